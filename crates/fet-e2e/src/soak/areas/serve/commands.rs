//! Commands of the primary that run again and again while processes are killed: trainings, and predictions of
//! a table.

use crate::case::{CaseResult, FaultKind};
use crate::message::problems;
use crate::process::{Ended, Process};
use crate::soak::compare::without_similarities;
use crate::soak::world::SoakWorld;

/// Exit code of a command that may be given again.
const TEMPORARY: i32 = 75;

/// Work of a command, and its right result.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// Trains. The files must be those of the simulation.
    Training,
    /// Predicts `new.csv` by a run or a service.
    Predictions {
        /// Folder of the run, or address of the service.
        by: String,
        /// Predictions of the simulation.
        expected: String,
    },
}

/// Command that starts again whenever it has finished. A command that was killed, or that ended with 75, is
/// given again unchanged.
#[derive(Debug)]
pub(super) struct Repeated {
    name: &'static str,
    task: Task,
    process: Option<Process>,
    /// True if the command was given and has not finished.
    begun: bool,
    is_last: bool,
    finished: u32,
    kills: u32,
    /// Number of ends with 75.
    temporary: u32,
}

impl Repeated {
    pub(super) fn new(name: &'static str, task: Task) -> Self {
        Self { name, task, process: None, begun: false, is_last: false, finished: 0, kills: 0, temporary: 0 }
    }

    /// Lets the current command finish, and starts none after it.
    pub(super) fn end(&mut self) {
        self.is_last = true;
    }

    /// Returns true until the last command has finished.
    pub(super) fn runs(&self) -> bool {
        self.begun || self.finished == 0
    }

    /// Returns the number of predicted rows.
    pub(super) fn rows(&self) -> u64 {
        match &self.task {
            Task::Training => 0,
            Task::Predictions { expected, .. } => {
                u64::from(self.finished) * (expected.lines().count() as u64 - 1)
            }
        }
    }

    /// Kills the process. Returns false if there is none.
    pub(super) fn kill(&mut self) -> bool {
        let Some(mut process) = self.process.take() else { return false };
        process.kill();
        self.kills += 1;
        true
    }

    /// Describes the current process, for a fault.
    pub(super) fn describe(&self) -> String {
        format!("{}: {}", self.name, self.process.as_ref().map_or_else(String::new, Process::stderr))
    }

    /// Returns true if a process ended with 75.
    pub(super) fn was_interrupted(&self) -> bool {
        self.temporary > 0
    }

    /// Summarizes all processes.
    pub(super) fn summary(&self) -> String {
        let Self { name, finished, kills, temporary, .. } = self;
        format!("{name}: {finished} finished, {kills} killed, {temporary} ended with 75")
    }

    /// Checks an ended process, and starts the next one.
    pub(super) fn tend(&mut self, world: &SoakWorld<'_>, verdict: &mut CaseResult) -> anyhow::Result<()> {
        let Some(process) = &mut self.process else {
            if self.begun || !self.is_last || self.finished == 0 {
                self.process = Some(self.start(world)?);
                self.begun = true;
            }
            return Ok(());
        };
        let Some(ended) = process.ended()? else { return Ok(()) };
        self.process = None;
        match ended.code {
            Some(0) => {
                self.check(world, verdict)?;
                self.finished += 1;
                self.begun = false;
            }
            Some(TEMPORARY) => {
                self.temporary += 1;
                for problem in problems(&ended.stderr, &[]) {
                    verdict.fault(FaultKind::Unclear, format!("{}: {problem}: {}", self.name, ended.stderr));
                }
            }
            _ => self.refuse(&ended, verdict)?,
        }
        Ok(())
    }

    /// Notes a wrong end. A command that never ends well would go on forever.
    fn refuse(&self, ended: &Ended, verdict: &mut CaseResult) -> anyhow::Result<()> {
        let what = format!("{}: {}: {}", self.name, ended.describe(), ended.stderr);
        verdict.fault(FaultKind::WrongCode, what);
        anyhow::ensure!(verdict.faults.len() < 10, "too many faults");
        Ok(())
    }

    /// Returns the name of the result.
    fn out(&self) -> String {
        match self.task {
            Task::Training => format!("{}-{}", self.name, self.finished),
            Task::Predictions { .. } => format!("{}.csv", self.name),
        }
    }

    fn start(&self, world: &SoakWorld<'_>) -> anyhow::Result<Process> {
        let out = self.out();
        let parties = ["--parties", "roster.toml", "--key", "own.key"];
        let Task::Predictions { by, .. } = &self.task else { return world.start(&out, &parties) };
        let more = if by.starts_with("http") { &["--wait", "120"] } else { &parties[..] };
        let arguments = [&["predict", by.as_str(), "--rows", "new.csv", "--out", &out], more].concat();
        Process::start(&world.kit.fet, &arguments, &world.member_folder("primary"), self.name)
    }

    /// Compares the result with the right one, and removes predictions.
    fn check(&self, world: &SoakWorld<'_>, verdict: &mut CaseResult) -> anyhow::Result<()> {
        let Task::Predictions { expected, .. } = &self.task else {
            return world.compare_run(&self.out(), verdict);
        };
        let path = world.member_folder("primary").join(self.out());
        if without_similarities(&std::fs::read_to_string(&path)?) != *expected {
            let what = format!("the predictions of `{}` differ from those of the simulation", self.name);
            verdict.fault(FaultKind::WrongBytes, what);
        }
        Ok(std::fs::remove_file(path)?)
    }
}
