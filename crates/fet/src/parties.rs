//! Parties on machines of their own: who they are, how they reach each other, and what each of them runs.
//!
//! All of them have one *roster*: the run's name, the server through which they reach each other, and everybody's identity. The
//! primary runs `fet run EXPERIMENT --parties ROSTER`, and each of the others `fet party FILE`. What they compute is what the
//! simulation computes: its trainer asks the same parties, through [`remote`] instead of within a process.

pub mod hub;
pub mod keys;
pub mod network;
mod remote;
mod roster;
pub mod serve;

use serde::{Deserialize, Serialize};

/// What a program says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    /// The program and its version.
    program: String,
    /// What the primary wants.
    purpose: Purpose,
}

/// What the primary wants of the parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A run: training, or going on with it.
    #[default]
    Run,
    /// Predictions with the models of a finished run.
    Predictions,
}

impl About {
    fn of(purpose: Purpose) -> String {
        let program = format!("fet {} (commit {})", env!("CARGO_PKG_VERSION"), env!("FET_COMMIT"));
        serde_json::to_string(&Self { program, purpose }).expect("plain data")
    }

    /// What another program says of itself; nothing that can be read is an unknown program that trains.
    fn read(text: &str) -> Self {
        let unknown = || Self { program: "an unknown program".into(), purpose: Purpose::Run };
        serde_json::from_str(text).unwrap_or_else(|_| unknown())
    }
}
