//! Experiments, and arguments of `--set`. Settings that are accepted, written out with every default and read
//! again must be unchanged.

use std::path::Path;

use fet_core::experiment::{Experiment, overlay, set as change, syntax};
use fet_core::schema;

use crate::fuzz::contract::{ReaderOutcome, outcome};

// The crates of the plug-ins must be named to be linked.
use {fet_baselines as _, fet_components as _, fet_data as _, fet_linkers as _};

/// Returns the experiments of the repository, merged with the experiments that they extend.
pub(super) fn experiments() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let read = |path: &Path| std::fs::read_to_string(path).ok()?.parse::<toml::Table>().ok();
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let whole = |path: &Path| {
        let mut table = read(path)?;
        let base = table.remove("extends").and_then(|base| read(&folder.join(base.as_str()?)));
        let mut all = base.unwrap_or_default();
        overlay(&mut all, table);
        for part in ["ablation", "profile", "tune", "attack", "extends"] {
            all.remove(part);
        }
        Some(all.to_string().into_bytes())
    };
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter_map(|p| whole(p))
        .collect()
}

/// Returns an assignment for every setting with a default, and some assignments that choose a plug-in.
pub(super) fn assignments() -> Vec<Vec<u8>> {
    let mut all: Vec<String> =
        ["linker.kind=\"clk\"", "method.kind=solo", "encoder.kind=\"mlp\"", "name=x", "seed=3"]
            .map(String::from)
            .to_vec();
    let plain = ["train", "split", "scores", "seed", "policy"];
    for setting in schema::settings(Experiment::schema(), "") {
        let first = setting.path.split('.').next().unwrap_or_default();
        if let Some(default) = setting.default.filter(|_| plain.contains(&first)) {
            let assignment = format!("{}={default}", setting.path);
            let mut table = start();
            if change(&mut table, &assignment).is_ok() && Experiment::from_table(table).is_ok() {
                all.push(assignment);
            }
        }
    }
    all.into_iter().map(String::into_bytes).collect()
}

fn start() -> toml::Table {
    "name = \"x\"\n[data]\nkind = \"split\"\n[data.source]\nkind = \"digits\"\n".parse().expect("TOML")
}

pub(super) fn toml(bytes: &[u8]) -> ReaderOutcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return ReaderOutcome::Refused("is not UTF-8".into()) };
    match text.parse::<toml::Table>() {
        Ok(table) => outcome(experiment(table)),
        Err(error) => ReaderOutcome::Refused(syntax(&error)),
    }
}

pub(super) fn set(bytes: &[u8]) -> ReaderOutcome {
    let text = String::from_utf8_lossy(bytes);
    let assignment = text.trim_end_matches('\n');
    let mut table = start();
    match change(&mut table, assignment) {
        Ok(()) => outcome(experiment(table)),
        Err(error) => ReaderOutcome::Refused(error.to_string()),
    }
}

fn experiment(table: toml::Table) -> Result<Option<String>, fet_core::registry::SettingsError> {
    let mut given = table.clone();
    // Free text, which changes no result.
    given.remove("origin");
    let first = Experiment::from_table(table)?;
    if let Some(path) = lost(&given, &first.to_table(), "") {
        return Ok(Some(format!("`{path}` was given but is missing in the settings")));
    }
    let written = first.to_table().to_string();
    let again = written.parse::<toml::Table>().map_err(|error| error.to_string());
    Ok(match again.and_then(|table| Experiment::from_table(table).map_err(|error| error.to_string())) {
        Err(error) => Some(format!("the written settings are refused: {error}")),
        Ok(again) if again.to_table().to_string() != written => {
            Some("the written settings are read differently".into())
        }
        Ok(_) => None,
    })
}

/// Returns the path of a given setting that is absent or different in the result.
fn lost(given: &toml::Table, made: &toml::Table, path: &str) -> Option<String> {
    given.iter().find_map(|(name, value)| {
        let path = format!("{path}{name}");
        match (value, made.get(name)) {
            (toml::Value::Table(given), Some(toml::Value::Table(made))) => {
                lost(given, made, &format!("{path}."))
            }
            (given, Some(made)) if same(given, made) => None,
            // An empty value equals a missing one.
            (toml::Value::String(text), None) if text.is_empty() => None,
            (toml::Value::Array(values), None) if values.is_empty() => None,
            (toml::Value::Table(values), None) if values.is_empty() => None,
            _ => Some(path),
        }
    })
}

fn same(given: &toml::Value, made: &toml::Value) -> bool {
    use toml::Value::{Array, Float, Integer, Table};
    match (given, made) {
        (Integer(whole), Float(number)) => *whole as f64 == *number,
        (Float(given), Float(made)) => given == made || (*given as f32) == (*made as f32),
        (Array(given), Array(made)) => {
            given.len() == made.len() && given.iter().zip(made).all(|(given, made)| same(given, made))
        }
        (Table(given), Table(made)) => lost(given, made, "").is_none(),
        (given, made) => given == made,
    }
}
