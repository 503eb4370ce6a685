//! Parties on separate machines: their identities, their connection, and the command of each party.
//!
//! All parties share one *roster* with the run's name, the server that connects them, and every party's
//! identity. The primary runs `fet run EXPERIMENT --parties ROSTER`; each other party runs `fet party FILE`.
//! The parties compute the same results as a simulation. The same trainer sends the same requests, over the
//! network instead of within a process.

mod approval;
pub mod approve;
pub mod audit_log;
pub mod check;
mod encoder;
mod greeting;
pub mod hub;
pub mod keys;
mod linking_progress;
mod monitor;
pub mod network;
mod observer;
mod owner;
mod programs;
pub mod prune;
pub(crate) mod remote;
mod roster;
mod run_id;
mod run_monitor;
pub mod serve;
mod serving;
pub(crate) mod setup;
pub mod status;
#[cfg(unix)]
mod systemd;

use fet_core::experiment::Experiment;
use fet_core::schema::{self, KINDS, SOURCE, Setting};
use fet_federation::trainer::RunError;
use serde_json::Value;

pub use self::greeting::JoinPurpose;
pub(crate) use self::greeting::check_secrets;
pub use self::roster::Unreached;
use fet_io::input::input;

/// A kind of file that parties on separate machines read in addition to the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartyFileKind {
    /// A party's own file.
    Party,
    /// The roster.
    Roster,
}

impl PartyFileKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Party, Self::Roster];

    /// Returns the name of the kind, the first part of the paths of its settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Party => "party",
            Self::Roster => "roster",
        }
    }

    /// Returns the schema of the types that the program reads from the file.
    ///
    /// The schema of a party's own file also lists the devices of this program and the settings of a secondary's
    /// table, which the program checks after it has read the file.
    pub fn schema(self) -> Value {
        let mut schema = match self {
            Self::Party => schema::for_type::<setup::PartyFile>(),
            Self::Roster => schema::for_type::<roster::RosterFile>(),
        };
        schema[SOURCE] = match self {
            Self::Party => "fet::parties::setup",
            Self::Roster => "fet::parties::roster",
        }
        .into();
        if self == Self::Party {
            schema["properties"]["device"]["enum"] = fet_backends::NAMES.into();
            if let Some(table) = table_of_secondary() {
                let meaning = schema["properties"]["data"]["description"].take();
                schema["properties"]["data"] = table;
                schema["properties"]["data"]["description"] = meaning;
            }
        }
        schema
    }

    /// Returns the settings of the file, whose paths begin with the kind's name.
    pub fn settings(self) -> Vec<Setting> {
        schema::settings(&self.schema(), self.name())
    }
}

/// Returns the schema of a secondary's table, if one dataset of this program has such tables.
fn table_of_secondary() -> Option<Value> {
    let datasets = Experiment::schema()["properties"]["data"][KINDS].as_object()?;
    let mut found = datasets.values().filter_map(|settings| {
        let table = settings["properties"]["secondaries"].get("items")?;
        table.get("properties")?;
        let mut table = table.clone();
        table[SOURCE] = settings[SOURCE].clone();
        Some(table)
    });
    found.next().filter(|_| found.next().is_none())
}

/// Converts the error of a run with parties elsewhere: an unreachable or restarted party, or invalid input.
pub(crate) fn error(error: RunError) -> anyhow::Error {
    match error {
        RunError::Party(error) if error.is_unreached() => Unreached(error.to_string()).into(),
        RunError::Party(error) if error.is_restart() || error.is_not_now() => error.into(),
        error => input(error),
    }
}
