//! What all cases share: the programs, a key of each member, and simulations that were run before.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::experiment::Experiment;
use crate::process::Process;

/// The members of every roster; an experiment with fewer parties leaves out the last.
pub(crate) const MEMBERS: [&str; 4] = ["primary", "p1", "p2", "p3"];

/// What all cases share.
#[derive(Debug)]
pub struct Kit {
    pub(crate) fet: PathBuf,
    pub(crate) nats: PathBuf,
    root: PathBuf,
    /// How many times longer than on an idle machine a process may take.
    patience: u32,
    simulations: RefCell<BTreeMap<String, PathBuf>>,
}

impl Kit {
    /// Makes the keys below `root`.
    pub(crate) fn new(fet: &Path, root: &Path, patience: u32) -> anyhow::Result<Self> {
        let nats = std::env::var_os("FET_NATS").map_or_else(|| "nats-server".into(), PathBuf::from);
        let found = Command::new(&nats).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        ensure!(
            found.is_ok_and(|status| status.success()),
            "{} does not run: name a nats-server in FET_NATS",
            nats.display()
        );
        // A copy: one that is built meanwhile would not be that of the simulations.
        let own = root.join("fet");
        std::fs::copy(fet, &own).with_context(|| format!("{}", fet.display()))?;
        let kit = Self { fet: own, nats, root: root.into(), patience, simulations: RefCell::default() };
        let keys = root.join("keys");
        std::fs::create_dir_all(&keys)?;
        for member in MEMBERS.iter().chain(&["stranger"]) {
            kit.new_key(&keys, member)?;
        }
        Ok(kit)
    }

    /// As long as this, but longer where the machine is busy.
    pub(crate) fn patience(&self, seconds: u64) -> Duration {
        Duration::from_secs(seconds) * self.patience
    }

    /// The two lines of the roster that the others are told of a key.
    pub(crate) fn public(&self, member: &str) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.root.join("keys").join(format!("{member}.pub")))?)
    }

    /// Copies a member's key to `path`.
    pub(crate) fn copy_key(&self, member: &str, path: &Path) -> anyhow::Result<()> {
        std::fs::copy(self.key(member), path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(())
    }

    /// A member's key.
    pub(crate) fn key(&self, member: &str) -> PathBuf {
        self.root.join("keys").join(format!("{member}.key"))
    }

    /// What `fet` prints in a folder, where it must succeed.
    pub(crate) fn asked(&self, folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
        let mut process = Process::start(&self.fet, arguments, folder, "asked")?;
        let ended = process.wait(self.patience(60))?;
        ensure!(ended.code == Some(0), "`fet {}` fails: {}", arguments.join(" "), ended.stderr);
        Ok(process.stdout())
    }

    /// The folder of the simulation of an experiment.
    pub(crate) fn simulation(&self, experiment: &Experiment) -> anyhow::Result<PathBuf> {
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
        self.asked(&folder, &["run", "exp.toml", "--out", "out"]).context("the simulation")?;
        self.simulations.borrow_mut().insert(text, folder.join("out"));
        Ok(folder.join("out"))
    }

    fn new_key(&self, keys: &Path, member: &str) -> anyhow::Result<()> {
        let public = self.asked(keys, &["keys", "new", &format!("{member}.key")])?;
        std::fs::write(keys.join(format!("{member}.pub")), public)?;
        Ok(())
    }
}
