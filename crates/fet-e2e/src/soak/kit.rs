//! Shared resources of all cases: the programs, the key of each member, and finished simulations.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::process::Process;
use crate::soak::experiment::SoakExperiment;

/// Maximum number of parties on one machine.
pub(crate) const MOST_PARTIES: usize = 64;

/// Members of every roster, the primary first. An experiment with fewer parties uses the first of them.
pub(crate) static MEMBERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    std::iter::once("primary".into()).chain((1..=MOST_PARTIES).map(|number| format!("p{number}"))).collect()
});

/// Shared resources of all cases.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) fet: PathBuf,
    /// Programs that the parties take in turn; empty if they use `fet`.
    party_programs: Vec<PathBuf>,
    pub(crate) nats: PathBuf,
    root: PathBuf,
    /// Factor on the time limits, which assume an idle machine.
    patience: u32,
    /// Number of kills in a case of the area `serve`; replaces the number of the case.
    pub(crate) kills: Option<u32>,
    simulations: RefCell<BTreeMap<String, PathBuf>>,
}

impl Kit {
    /// Creates the kit. Keys and simulations are stored below `root`.
    pub(crate) fn new(fet: &Path, root: &Path, patience: u32, kills: Option<u32>) -> anyhow::Result<Self> {
        let nats = std::env::var_os("FET_NATS").map_or_else(|| "nats-server".into(), PathBuf::from);
        let found = Command::new(&nats).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        ensure!(
            found.is_ok_and(|status| status.success()),
            "{} does not run: name a nats-server in FET_NATS",
            nats.display()
        );
        // Copies the program, so that a new build during the soak does not replace the program of the
        // simulations.
        let own = copy(fet, root.join("fet"))?;
        std::fs::create_dir_all(root.join("keys"))?;
        Ok(Self {
            fet: own,
            party_programs: Vec::new(),
            nats,
            root: root.into(),
            patience,
            kills,
            simulations: RefCell::default(),
        })
    }

    /// Adds a program that parties use in place of `fet`.
    pub(crate) fn add_party_program(&mut self, program: &Path) -> anyhow::Result<()> {
        let number = self.party_programs.len();
        self.party_programs.push(copy(program, self.root.join(format!("fet-party-{number}")))?);
        Ok(())
    }

    /// Returns the program of a party.
    pub(crate) fn party_program(&self, member: &str) -> &Path {
        let place = MEMBERS[1..].iter().position(|other| other == member).unwrap_or(0);
        self.party_programs.iter().cycle().nth(place).unwrap_or(&self.fet)
    }

    /// Returns the time limit, multiplied for a busy machine.
    pub(crate) fn patience(&self, seconds: u64) -> Duration {
        Duration::from_secs(seconds) * self.patience
    }

    /// Returns the two public lines of a member's key for the roster.
    pub(crate) fn public(&self, member: &str) -> anyhow::Result<String> {
        self.make_key(member)?;
        Ok(std::fs::read_to_string(self.key(member).with_extension("pub"))?)
    }

    /// Copies a member's key to `path`.
    pub(crate) fn copy_key(&self, member: &str, path: &Path) -> anyhow::Result<()> {
        self.make_key(member)?;
        std::fs::copy(self.key(member), path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(())
    }

    /// Returns the path of a member's key.
    pub(crate) fn key(&self, member: &str) -> PathBuf {
        self.root.join("keys").join(format!("{member}.key"))
    }

    /// Runs `fet` in a folder and returns its output. Fails if `fet` fails.
    pub(crate) fn output_of(&self, folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
        let mut process = Process::start(&self.fet, arguments, folder, "asked")?;
        let ended = process.wait(self.patience(60))?;
        ensure!(ended.code == Some(0), "`fet {}` fails: {}", arguments.join(" "), ended.stderr);
        Ok(process.stdout())
    }

    /// Returns the folder of an experiment's simulation, which runs on the first call.
    pub(crate) fn simulation(&self, experiment: &SoakExperiment) -> anyhow::Result<PathBuf> {
        let text = experiment.text();
        if let Some(folder) = self.simulations.borrow().get(&text) {
            return Ok(folder.clone());
        }
        let folder = self.root.join(format!("simulation-{}", self.simulations.borrow().len()));
        std::fs::create_dir_all(&folder)?;
        for table in experiment.files() {
            std::fs::write(folder.join(format!("{}.csv", table.name)), &table.text)?;
        }
        std::fs::write(folder.join("exp.toml"), &text)?;
        if let Err(error) = self.output_of(&folder, &["run", "exp.toml", "--out", "out"]) {
            std::fs::remove_dir_all(&folder)?;
            return Err(error.context("the simulation"));
        }
        self.simulations.borrow_mut().insert(text, folder.join("out"));
        Ok(folder.join("out"))
    }

    /// Creates a member's key if missing.
    fn make_key(&self, member: &str) -> anyhow::Result<()> {
        let public = self.key(member).with_extension("pub");
        if !public.exists() {
            let said = self.output_of(&self.root.join("keys"), &["keys", "new", &format!("{member}.key")])?;
            std::fs::write(public, said)?;
        }
        Ok(())
    }
}

/// Copies a program, and returns the path of the copy.
fn copy(program: &Path, own: PathBuf) -> anyhow::Result<PathBuf> {
    std::fs::copy(program, &own).with_context(|| format!("{}", program.display()))?;
    Ok(own)
}
