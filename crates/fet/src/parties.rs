//! Parties on separate machines: their identities, their connection, and the command of each party.
//!
//! All parties share one *roster* with the run's name, the server that connects them, and every party's
//! identity. The primary runs `fet run EXPERIMENT --parties ROSTER`; each other party runs `fet party FILE`.
//! The parties compute the same results as a simulation. The same trainer sends the same requests, over the
//! network instead of within a process.

pub mod hub;
pub mod keys;
pub mod network;
mod observer;
pub mod prune;
mod remote;
mod reporter;
mod roster;
mod run_id;
pub mod serve;
pub(crate) mod setup;
pub mod status;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fet_core::data::{DatasetContext, Folders};
use fet_core::experiment::{Experiment, syntax};
use fet_core::registry::Violation;
use fet_core::schema::{self, Setting};
use fet_federation::trainer::RunError;
use fet_net::Keys;
use fet_net::nats::{Hub, NatsError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::roster::Roster;
use self::run_id::RunId;
use fet_io::input::input;

/// Reads one of the parties' files; errors use the same wording as errors in settings.
pub(crate) fn read<T: JsonSchema + DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let bad = |problem: String| input(format!("{}: {problem}", path.display()));
    let text = fet_io::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| bad(syntax(&error)))?;
    schema::check(&table, &schema::for_type::<T>()).map_err(|error| {
        let shown = error.excerpt(&path.display().to_string(), &text);
        bad(format!("{error}{}", shown.map_or_else(String::new, |shown| format!("\n{}", shown.trim_end()))))
    })?;
    table.try_into().map_err(|error: toml::de::Error| bad(syntax(&error)))
}

/// Returns the settings of a party's own file and of the roster, each with a title.
pub(crate) fn settings() -> [(&'static str, Vec<Setting>); 2] {
    [
        ("Own file", schema::settings(&schema::for_type::<setup::PartyFile>(), "")),
        ("Roster", schema::settings(&schema::for_type::<roster::RosterFile>(), "")),
    ]
}

/// Error for a party or server that cannot be reached now; the same command may succeed later (exit code 75).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreached(pub String);

/// Converts the error of a run with parties elsewhere: an unreachable or restarted party, or invalid input.
pub(crate) fn error(error: RunError) -> anyhow::Error {
    match error {
        RunError::Party(error) if error.is_unreached() => Unreached(error.to_string()).into(),
        RunError::Party(error) if error.is_restart() => error.into(),
        error => input(error),
    }
}

/// Connects to the server of a roster as the owner of these keys, and waits for a server that does not
/// answer.
fn connect(roster: &Roster, keys: &Arc<Keys>, wait: Duration) -> anyhow::Result<Hub> {
    Hub::connect(&roster.server(), keys, wait).map_err(|error| match error {
        NatsError::Unreachable { .. } => Unreached(error.to_string()).into(),
        error => input(error),
    })
}

/// Greeting of a program that joins: a description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Greeting {
    /// Name and version of the program.
    program: String,
    /// Purpose for which the primary joins.
    purpose: JoinPurpose,
    /// Instruction set that the program computes with.
    #[serde(default)]
    instructions: String,
    /// Id of the run for which the primary joins.
    #[serde(default)]
    run: String,
    /// Settings of the data (TOML), if all parties take their tables from one common table.
    #[serde(default)]
    data: Option<String>,
    /// Confirmation of the linkers' common secret, if the linker has one.
    #[serde(default)]
    secret: Option<String>,
    /// True if the program derives its secrets from the experiment's seed.
    #[serde(default)]
    rehearsal: bool,
}

/// Purpose for which the primary needs the parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinPurpose {
    /// Training of a new or a resumed run.
    #[default]
    Run,
    /// Predictions with the models of a finished run.
    Predictions,
}

impl Greeting {
    /// Returns the greeting of a primary.
    fn of_primary(purpose: JoinPurpose, run: &RunId, experiment: &Experiment) -> Self {
        let (data, secret) = (common_data(experiment), confirmation(experiment));
        Self { purpose, run: run.to_string(), data, secret, ..Self::party() }
    }

    /// Returns the greeting of a party, which is also part of a primary's greeting.
    fn party() -> Self {
        let program = format!("fet {} (commit {})", env!("CARGO_PKG_VERSION"), env!("FET_COMMIT"));
        Self { program, instructions: instructions(), ..Self::default() }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// Parses another program's greeting; an unreadable greeting means an unknown program that trains.
    fn read(text: &str) -> Self {
        let unknown = |_| Self { program: "an unknown program".into(), ..Self::default() };
        let about: Self = serde_json::from_str(text).unwrap_or_else(unknown);
        Self { program: one_line(&about.program), instructions: one_line(&about.instructions), ..about }
    }
}

/// Shortens another program's text and removes its line breaks, for use within a line.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the instructions of this machine that change the last bits of a sum.
fn instructions() -> String {
    let mut found = vec![std::env::consts::ARCH];
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("avx2", std::arch::is_x86_feature_detected!("avx2")),
            ("fma", std::arch::is_x86_feature_detected!("fma")),
            ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ];
        found.extend(known.iter().filter(|(_, has)| *has).map(|(name, _)| *name));
    }
    found.join(" ")
}

/// Returns the data settings if all parties take their tables from one common table.
fn common_data(experiment: &Experiment) -> Option<String> {
    // Limit in bytes, because a greeting must be short.
    const LONGEST: usize = 2_000;
    let context = DatasetContext { folders: &Folders::default(), seed: experiment.seed, metadata: &[] };
    // A dataset that cannot be built without its folder counts as shared, so that both ends compare its settings.
    let shared = experiment.data.build(&context).map_or(true, |dataset| dataset.is_shared());
    let text = shared.then(|| experiment.data.settings().to_string())?;
    match text.len() {
        ..=LONGEST => Some(text),
        _ => Some(format!("settings with the checksum {}", fet_io::hex(&fet_io::sha256(text.as_bytes())))),
    }
}

/// Refuses linkers without their common secret, except in a rehearsal.
///
/// Without such a secret, every reader of the experiment could derive the linkers' secret from its seed.
pub(crate) fn check_secrets(experiment: &Experiment, rehearsal: bool) -> Result<(), Violation> {
    let refuse = |rule: &str, name: &str| Err(Violation::new("linker.secret_env", rule, format!("{name:?}")));
    match secret_env(&experiment.linker.settings()).as_deref() {
        Some("") if !rehearsal => refuse(
            "must name an environment variable that holds the linkers' common secret, at every party: otherwise the \
             secret derives from the experiment's seed",
            "",
        ),
        Some(name) if !name.is_empty() && std::env::var_os(name).is_none() => refuse(
            "must name an environment variable that contains the linkers' common secret; the variable is not set",
            name,
        ),
        _ => Ok(()),
    }
}

/// Returns the environment variable with the linkers' common secret, empty if none is set; `None` if no
/// linker has this setting.
fn secret_env(settings: &toml::Table) -> Option<String> {
    match settings.get("secret_env") {
        Some(name) => name.as_str().map(String::from),
        None => settings.values().filter_map(toml::Value::as_table).find_map(secret_env),
    }
}

/// Returns a digest that confirms the linkers' common secret to a party with the same secret. Only the other
/// end of a link receives the digest.
fn confirmation(experiment: &Experiment) -> Option<String> {
    let name = secret_env(&experiment.linker.settings()).filter(|name| !name.is_empty())?;
    let secret = std::env::var_os(name)?;
    let text = [b"fet linkers' common secret\0".as_slice(), secret.as_encoded_bytes()].concat();
    Some(fet_io::hex(&fet_io::sha256(&text)))
}
