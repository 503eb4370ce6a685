//! Parties on machines of their own: who they are, how they reach each other, and what each of them runs.
//!
//! All of them have one *roster*: the run's name, the server through which they reach each other, and everybody's identity. The
//! primary runs `fet run EXPERIMENT --parties ROSTER`, and each of the others `fet party FILE`. What they compute is what the
//! simulation computes: its trainer asks the same parties, over the network instead of within a process.

pub mod hub;
pub mod keys;
pub mod network;
mod observer;
pub mod prune;
mod remote;
mod roster;
mod run_id;
pub(crate) mod seat;
pub mod serve;
pub mod status;
mod teller;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fet_core::data::{DatasetContext, Folders};
use fet_core::experiment::{Experiment, syntax};
use fet_core::registry::Violation;
use fet_core::schema;
use fet_federation::trainer::RunError;
use fet_net::Keys;
use fet_net::nats::{Hub, NatsError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::roster::Roster;
use self::run_id::RunId;
use fet_io::input::input;

/// Reads one of the files of parties: what its type does not allow is refused in the words of settings.
pub(crate) fn read<T: JsonSchema + DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let bad = |problem: String| input(format!("{}: {problem}", path.display()));
    let text = fet_io::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| bad(syntax(&error)))?;
    schema::check(&table, &schema::of::<T>()).map_err(|error| {
        let shown = error.excerpt(&path.display().to_string(), &text);
        bad(format!("{error}{}", shown.map_or_else(String::new, |shown| format!("\n{}", shown.trim_end()))))
    })?;
    table.try_into().map_err(|error: toml::de::Error| bad(syntax(&error)))
}

/// A party, or the server, cannot be reached now: the same command may succeed later (exit code 75).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreached(pub String);

/// Why a run with parties elsewhere failed: a party that cannot be reached or was started again, or invalid input.
pub(crate) fn error(error: RunError) -> anyhow::Error {
    match error {
        RunError::Party(error) if error.is_unreached() => Unreached(error.to_string()).into(),
        RunError::Party(error) if error.is_restart() => error.into(),
        error => input(error),
    }
}

/// The server of a roster, as the owner of these keys; one that does not answer is waited for.
fn connect(roster: &Roster, keys: &Arc<Keys>, wait: Duration) -> anyhow::Result<Hub> {
    Hub::connect(&roster.server(), keys, wait).map_err(|error| match error {
        NatsError::Unreachable { .. } => Unreached(error.to_string()).into(),
        error => input(error),
    })
}

/// What a program says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct About {
    /// The program and its version.
    program: String,
    /// What the primary wants.
    purpose: Purpose,
    /// The instructions that it computes with.
    #[serde(default)]
    instructions: String,
    /// Which run the primary joins for.
    #[serde(default)]
    run: String,
    /// The settings of the data (TOML), where all parties cut theirs out of one table: nobody has a table of its own.
    #[serde(default)]
    data: Option<String>,
    /// What confirms the linkers' common secret, where there is one.
    #[serde(default)]
    secret: Option<String>,
    /// Whether its secrets follow from the experiment's seed.
    #[serde(default)]
    rehearsal: bool,
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
    /// What the primary says.
    fn of(purpose: Purpose, run: &RunId, experiment: &Experiment) -> Self {
        let (data, secret) = (common_data(experiment), confirmation(experiment));
        Self { purpose, run: run.to_string(), data, secret, ..Self::party() }
    }

    /// What a party says, or a primary besides what it wants.
    fn party() -> Self {
        let program = format!("fet {} (commit {})", env!("CARGO_PKG_VERSION"), env!("FET_COMMIT"));
        Self { program, instructions: instructions(), ..Self::default() }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// What another program says of itself; nothing that can be read is an unknown program that trains.
    fn read(text: &str) -> Self {
        let unknown = |_| Self { program: "an unknown program".into(), ..Self::default() };
        let about: Self = serde_json::from_str(text).unwrap_or_else(unknown);
        Self { program: one_line(&about.program), instructions: one_line(&about.instructions), ..about }
    }
}

/// What another program says, as part of a line: no more than is read, and no line of its own.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The instructions of this machine that change the last bits of a sum.
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

/// The settings of data that all parties cut out of one table.
fn common_data(experiment: &Experiment) -> Option<String> {
    // What a program says of itself has room for so much.
    const LONGEST: usize = 2_000;
    let context = DatasetContext { folders: &Folders::default(), seed: experiment.seed, aside: &[] };
    // Settings that build no dataset are refused where the data is read.
    let shared = experiment.data.build(&context).is_ok_and(|dataset| dataset.is_shared());
    let text = shared.then(|| experiment.data.settings().to_string())?;
    match text.len() {
        ..=LONGEST => Some(text),
        _ => Some(format!("settings with the checksum {}", fet_io::hex(&fet_io::sha256(text.as_bytes())))),
    }
}

/// Refuses linkers without their common secret: one that follows from the experiment's seed whoever reads the experiment knows.
pub(crate) fn check_secrets(experiment: &Experiment, rehearsal: bool) -> Result<(), Violation> {
    let refuse = |rule: &str, name: &str| Err(Violation::new("linker.secret_env", rule, format!("{name:?}")));
    match secret_env(&experiment.linker.settings()).as_deref() {
        Some("") if !rehearsal => refuse(
            "must name an environment variable that holds the linkers' common secret, at every party: without one the secret \
             follows from the experiment's seed",
            "",
        ),
        Some(name) if !name.is_empty() && std::env::var_os(name).is_none() => {
            refuse("must name an environment variable that is set, to the linkers' common secret", name)
        }
        _ => Ok(()),
    }
}

/// The environment variable that holds the linkers' common secret, empty for none; nothing where a linker has no such setting.
fn secret_env(settings: &toml::Table) -> Option<String> {
    match settings.get("secret_env") {
        Some(name) => name.as_str().map(String::from),
        None => settings.values().filter_map(toml::Value::as_table).find_map(secret_env),
    }
}

/// What confirms the linkers' common secret to whoever has it. It goes to the other end of a link alone.
fn confirmation(experiment: &Experiment) -> Option<String> {
    let name = secret_env(&experiment.linker.settings()).filter(|name| !name.is_empty())?;
    let secret = std::env::var_os(name)?;
    let text = [b"fet linkers' common secret\0".as_slice(), secret.as_encoded_bytes()].concat();
    Some(fet_io::hex(&fet_io::sha256(&text)))
}
