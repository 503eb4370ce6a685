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

use fet_core::schema::{self, Setting};
use fet_federation::trainer::RunError;

pub use self::greeting::JoinPurpose;
pub(crate) use self::greeting::check_secrets;
pub use self::roster::Unreached;
use fet_io::input::input;

/// Returns the settings of a party's own file and of the roster, each with a title.
pub(crate) fn settings() -> [(&'static str, Vec<Setting>); 2] {
    [
        ("Own file", schema::settings(&schema::for_type::<setup::PartyFile>(), "")),
        ("Roster", schema::settings(&schema::for_type::<roster::RosterFile>(), "")),
    ]
}

/// Converts the error of a run with parties elsewhere: an unreachable or restarted party, or invalid input.
pub(crate) fn error(error: RunError) -> anyhow::Error {
    match error {
        RunError::Party(error) if error.is_unreached() => Unreached(error.to_string()).into(),
        RunError::Party(error) if error.is_restart() || error.is_not_now() => error.into(),
        error => input(error),
    }
}
