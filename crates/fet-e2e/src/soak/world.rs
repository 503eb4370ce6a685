//! Environment of a case: a folder for each member with its files, a server, and the commands of the members.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::case::{CaseResult, FaultKind};
use crate::process::{Ended, Process};
use crate::soak::compare::differences;
use crate::soak::experiment::SoakExperiment;
use crate::soak::kit::{Kit, MEMBERS};
use crate::soak::proxy::{Proxy, ProxyPlan};
use crate::soak::server::{NatsServer, certificates, free_port};

/// Environment of a case.
#[derive(Debug)]
pub(crate) struct SoakWorld<'a> {
    pub(crate) kit: &'a Kit,
    pub(crate) experiment: SoakExperiment,
    pub(crate) folder: PathBuf,
    pub(crate) server: NatsServer,
    tls: bool,
    /// Time in seconds that the primary waits for a party that dropped out.
    wait: u64,
}

impl<'a> SoakWorld<'a> {
    /// Writes the folders, and starts the server.
    pub(crate) fn new(
        kit: &'a Kit,
        folder: &Path,
        experiment: SoakExperiment,
        tls: bool,
        wait: u64,
    ) -> anyhow::Result<Self> {
        let hub = folder.join("hub");
        std::fs::create_dir_all(&hub)?;
        certificates(&hub)?;
        let port = free_port()?;
        let server = |world: &Self| {
            std::fs::write(hub.join("roster.toml"), world.roster(port)?)?;
            std::fs::write(hub.join("hub.conf"), kit.output_of(&hub, &["hub", "config", "roster.toml"])?)?;
            NatsServer::start(&kit.nats, &hub, port)
        };
        let mut world =
            Self { kit, experiment, folder: folder.into(), server: NatsServer::none(port), tls, wait };
        world.server = server(&world)?;
        for member in world.members() {
            let own = world.member_folder(member);
            std::fs::create_dir_all(&own)?;
            std::fs::copy(hub.join("ca.pem"), own.join("ca.pem"))?;
            match &world.experiment.given {
                None => std::fs::write(own.join("exp.toml"), world.experiment.text())?,
                Some(given) => given.data.iter().try_for_each(|data| symlink(data, own.join("data")))?,
            }
            std::fs::write(own.join("roster.toml"), world.roster(port)?)?;
            kit.copy_key(member, &own.join("own.key"))?;
        }
        world.write_tables()?;
        Ok(world)
    }

    /// Returns the members, the primary first.
    pub(crate) fn members(&self) -> Vec<&'static str> {
        MEMBERS[..=self.experiment.parties()].iter().map(String::as_str).collect()
    }

    /// Returns a member's folder.
    pub(crate) fn member_folder(&self, member: &str) -> PathBuf {
        self.folder.join(member)
    }

    /// Routes a member's connection to the server through a proxy.
    pub(crate) fn through(&self, member: &str, plan: ProxyPlan) -> anyhow::Result<Proxy> {
        let proxy = Proxy::start(self.server.port, plan)?;
        std::fs::write(self.member_folder(member).join("roster.toml"), self.roster(proxy.port())?)?;
        Ok(proxy)
    }

    /// Starts a party.
    pub(crate) fn party(&self, member: &str) -> anyhow::Result<Process> {
        Process::start(
            self.kit.party_program(member),
            &["party", "party.toml"],
            &self.member_folder(member),
            "party",
        )
    }

    /// Starts all parties.
    pub(crate) fn parties(&self) -> anyhow::Result<Vec<Process>> {
        self.members()[1..].iter().map(|member| self.party(member)).collect()
    }

    /// Starts the primary.
    pub(crate) fn primary(&self) -> anyhow::Result<Process> {
        self.start("out", &["--parties", "roster.toml", "--key", "own.key"])
    }

    /// Starts a run of the experiment in the primary's folder. Without arguments in `more` that name parties,
    /// the run is a simulation.
    pub(crate) fn start(&self, out: &str, more: &[&str]) -> anyhow::Result<Process> {
        let file = self.experiment.file();
        let arguments = [&["run", &file, "--log", "json", "--out", out], more].concat();
        Process::start(&self.kit.fet, &arguments, &self.member_folder("primary"), "run")
    }

    /// Runs the primary to its end.
    pub(crate) fn run(&self, patience: Duration) -> anyhow::Result<Ended> {
        self.primary()?.wait(patience)
    }

    /// Returns the path of a party's model.
    pub(crate) fn model(&self, member: &str) -> PathBuf {
        self.state_folder(member).join("model.safetensors")
    }

    /// Returns a party's folder for the state of the primary's run.
    pub(crate) fn state_folder(&self, member: &str) -> PathBuf {
        self.state_folder_of("out", member)
    }

    fn state_folder_of(&self, out: &str, member: &str) -> PathBuf {
        let run = std::fs::read_to_string(self.member_folder("primary").join(out).join("parties/run"))
            .unwrap_or_default();
        self.member_folder(member).join("state/runs").join(run.lines().next().unwrap_or("none"))
    }

    /// Compares the written files with the simulation.
    pub(crate) fn compare(&self, verdict: &mut CaseResult) -> anyhow::Result<()> {
        self.compare_run("out", verdict)
    }

    /// Compares the written files of the run in the primary's folder `out` with the simulation.
    pub(crate) fn compare_run(&self, out: &str, verdict: &mut CaseResult) -> anyhow::Result<()> {
        let simulation = self.kit.simulation(&self.experiment)?;
        let model = |member: &&str| self.state_folder_of(out, member).join("model.safetensors");
        let models: Vec<PathBuf> = self.members()[1..].iter().map(model).collect();
        for difference in differences(&simulation, &self.member_folder("primary").join(out), &models)? {
            verdict.fault(FaultKind::WrongBytes, difference);
        }
        Ok(())
    }

    /// Searches all output for panics, and checks that no party ended by itself.
    pub(crate) fn check(&self, parties: &mut [Process], verdict: &mut CaseResult) -> anyhow::Result<()> {
        for (member, party) in self.members()[1..].iter().zip(parties) {
            if let Some(ended) = party.ended()? {
                let last = ended.stderr.lines().last().unwrap_or_default().to_string();
                verdict.fault(
                    FaultKind::WrongCode,
                    format!("{member} ended by itself: {}: {last}", ended.describe()),
                );
            }
        }
        self.panics(verdict)
    }

    /// Searches all output for panics.
    pub(crate) fn panics(&self, verdict: &mut CaseResult) -> anyhow::Result<()> {
        for member in self.members() {
            for entry in std::fs::read_dir(self.member_folder(member))? {
                let path = entry?.path();
                if path.extension().is_none_or(|end| end != "err") {
                    continue;
                }
                let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
                if let Some(line) = text.lines().find(|line| line.contains("panicked at")) {
                    verdict.fault(FaultKind::Panic, format!("{member}: {line}"));
                }
            }
        }
        Ok(())
    }

    /// Returns the roster of a member that reaches the server at `port`.
    pub(crate) fn roster(&self, port: u16) -> anyhow::Result<String> {
        let scheme = if self.tls { "tls" } else { "nats" };
        let ca = if self.tls { "ca = \"ca.pem\"\n" } else { "" };
        let mut text = format!(
            "run = \"soak\"\nserver = \"{scheme}://127.0.0.1:{port}\"\n{ca}wait = {}\nrehearsal = {}\n\n[primary]\nname = \"primary\"\n{}",
            self.wait,
            self.experiment.rehearsal,
            self.kit.public("primary")?
        );
        for member in &self.members()[1..] {
            text += &format!("\n[[parties]]\nname = \"{member}\"\n{}", self.kit.public(member)?);
        }
        text += &format!("\n[hub]\nhost = \"127.0.0.1\"\nport = {port}\n");
        if self.tls {
            text += "certificate = \"certificate.pem\"\nkey = \"key.pem\"\n";
        }
        Ok(text)
    }

    /// Returns a party's settings file, with additional lines before its tables.
    pub(crate) fn party_file(&self, member: &str, more: &str, tables: &str) -> String {
        let place = MEMBERS.iter().position(|other| *other == member).unwrap_or(0);
        let table = self.experiment.files().get(place).map_or_else(String::new, |table| {
            format!("\n[data]\nfile = \"mine.csv\"\n{}\n", self.experiment.settings(table, "\n"))
        });
        format!(
            "party = \"{member}\"\nroster = \"roster.toml\"\nexperiment = {:?}\nkey = \"own.key\"\n\
             state = \"state\"\nrehearsal = {}\n{more}{table}{tables}",
            self.experiment.file(),
            self.experiment.rehearsal
        )
    }

    fn write_tables(&self) -> anyhow::Result<()> {
        let files = self.experiment.files();
        for (place, member) in self.members().into_iter().enumerate() {
            let own = self.member_folder(member);
            if place > 0 {
                std::fs::write(own.join("party.toml"), self.party_file(member, "", ""))?;
            }
            if let Some(table) = files.get(place) {
                // The files of other parties have another name than in the experiment.
                let name = if place > 0 { "mine.csv".into() } else { format!("{}.csv", table.name) };
                let path = own.join(name);
                std::fs::write(&path, &table.text).with_context(|| format!("{}", path.display()))?;
            }
        }
        Ok(())
    }
}
