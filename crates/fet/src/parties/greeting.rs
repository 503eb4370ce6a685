//! Greeting of a program that joins, and the linkers' common secret, which it confirms.

use fet_core::data::{DatasetContext, Folders};
use fet_core::experiment::Experiment;
use fet_core::registry::Violation;
use serde::{Deserialize, Serialize};

use super::run_id::RunId;

/// Greeting of a program that joins: a description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Greeting {
    /// Name and version of the program.
    pub(super) program: String,
    /// Purpose for which the primary joins.
    pub(super) purpose: JoinPurpose,
    /// Instruction set that the program computes with.
    #[serde(default)]
    pub(super) instructions: String,
    /// Id of the run for which the primary joins.
    #[serde(default)]
    pub(super) run: String,
    /// Settings of the data (TOML), if all parties take their tables from one common table.
    #[serde(default)]
    pub(super) data: Option<String>,
    /// Confirmation of the linkers' common secret, if the linker has one.
    #[serde(default)]
    pub(super) secret: Option<String>,
    /// True if the program derives its secrets from the experiment's seed.
    #[serde(default)]
    pub(super) rehearsal: bool,
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
    pub(super) fn of_primary(purpose: JoinPurpose, run: &RunId, experiment: &Experiment) -> Self {
        let (data, secret) = (common_data(experiment), confirmation(experiment));
        Self { purpose, run: run.to_string(), data, secret, ..Self::party() }
    }

    /// Returns the greeting of a party, which is also part of a primary's greeting.
    pub(super) fn party() -> Self {
        let program = format!("fet {} (commit {})", env!("CARGO_PKG_VERSION"), env!("FET_COMMIT"));
        Self { program, instructions: instructions(), ..Self::default() }
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// Parses another program's greeting; an unreadable greeting means an unknown program that trains.
    pub(super) fn read(text: &str) -> Self {
        let unknown = |_| Self { program: "an unknown program".into(), ..Self::default() };
        let about: Self = serde_json::from_str(text).unwrap_or_else(unknown);
        Self { program: one_line(&about.program), instructions: one_line(&about.instructions), ..about }
    }
}

/// Shortens another program's text and removes its line breaks, for use within a line.
pub(super) fn one_line(text: &str) -> String {
    const LONGEST: usize = 500;
    text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the instructions of this machine that change the last bits of a sum.
pub(super) fn instructions() -> String {
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
pub(super) fn common_data(experiment: &Experiment) -> Option<String> {
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
pub(super) fn secret_env(settings: &toml::Table) -> Option<String> {
    match settings.get("secret_env") {
        Some(name) => name.as_str().map(String::from),
        None => settings.values().filter_map(toml::Value::as_table).find_map(secret_env),
    }
}

/// Returns a digest that confirms the linkers' common secret to a party with the same secret. Only the other
/// end of a link receives the digest.
pub(super) fn confirmation(experiment: &Experiment) -> Option<String> {
    let name = secret_env(&experiment.linker.settings()).filter(|name| !name.is_empty())?;
    let secret = std::env::var_os(name)?;
    let text = [b"fet linkers' common secret\0".as_slice(), secret.as_encoded_bytes()].concat();
    Some(fet_io::hex(&fet_io::sha256(&text)))
}
