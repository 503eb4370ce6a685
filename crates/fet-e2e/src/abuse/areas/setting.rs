//! `--set`: every setting of every plug-in with values of other types, out of range, and with a second line.
//!
//! The cases use the settings that `fet show` and `fet list` print, so that new settings are tested
//! automatically.

use std::path::Path;

use crate::abuse::base::Bases;
use crate::abuse::sandbox::output_of;
use crate::abuse::script::{Base, Expect, Script, Step};
use crate::runner::quoted;

use Expect::{Either, Refused};

const AREA: &str = "--set";

/// Setting: its path, and its default as text.
#[derive(Debug, Clone)]
struct Setting {
    /// Other settings on which the setting depends.
    with: Vec<String>,
    path: String,
    default: String,
}

/// Values for a kind of setting, with the expected results.
type Values = &'static [(&'static str, Expect)];

const INTEGER: Values = &[
    ("x", Refused),
    ("1.5", Refused),
    ("true", Refused),
    ("[1]", Refused),
    ("{ a = 1 }", Refused),
    ("nan", Refused),
    ("-1", Refused),
    ("-9223372036854775808", Refused),
    ("9223372036854775807", Either),
    ("99999999999999999999", Refused),
    ("1\nseed = 5", Refused),
];
const FLOAT: Values = &[
    ("x", Refused),
    ("true", Refused),
    ("[1]", Refused),
    ("nan", Refused),
    ("inf", Refused),
    ("-inf", Refused),
    ("-1", Either),
    ("0", Either),
    ("1e308", Either),
    ("1e999", Refused),
    ("1\nseed = 5", Refused),
];
const TRUTH: Values =
    &[("x", Refused), ("1", Refused), ("\"true\"", Refused), ("[]", Refused), ("true\nseed = 5", Refused)];
const TEXT: Values = &[
    ("[]", Refused),
    ("{ a = 1 }", Refused),
    ("5", Either),
    ("\"\"", Either),
    ("no such", Either),
    ("\"a\\u001bb\"", Either),
    ("\"x\"\nseed = 5", Refused),
];
/// Values for a text setting with a fixed list of choices.
const CHOICE: Values =
    &[("[]", Refused), ("5", Refused), ("\"\"", Refused), ("no such", Refused), ("\"a\\u001bb\"", Refused)];
const ARRAY: Values = &[
    ("5", Refused),
    ("{ a = 1 }", Refused),
    ("[[1]]", Refused),
    ("[\"x\", 5, true]", Refused),
    ("[-1, nan]", Refused),
    ("[1]\nseed = 5", Refused),
];

/// Settings with free text: names and files.
const FREE: [&str; 7] = ["name", "file", "label", "secret_env", "column", "origin", "from"];

pub(crate) fn cases(fet: &Path, bases: &Bases, logs: &Path) -> anyhow::Result<Vec<Script>> {
    let folder = bases.folder(Base::Tables);
    let mut settings = parse_settings(&output_of(fet, &folder, logs, "show shops.toml")?);
    for slot in
        ["method", "linker", "encoder", "aggregator", "privacy", "labels", "attack", "data", "data.source"]
    {
        settings.extend(listed(slot, &output_of(fet, &folder, logs, &format!("list {slot}"))?));
    }
    Ok(settings.iter().flat_map(of_setting).collect())
}

fn of_setting(setting: &Setting) -> Vec<Script> {
    let name = setting.path.rsplit('.').next().unwrap_or(&setting.path);
    let (default, free) = (setting.default.as_str(), FREE.contains(&name));
    let values = match default.chars().next() {
        Some('"') if free => TEXT,
        Some('"') => CHOICE,
        Some('[') => ARRAY,
        Some('t' | 'f') => TRUTH,
        _ if default.contains(['.', 'e']) => FLOAT,
        _ => INTEGER,
    };
    let of_source = setting.with.first().is_some_and(|first| first.starts_with("data.source.kind"));
    let file = if of_source { "images.toml" } else { "shops.toml" };
    let case = |(value, expect): &(&str, Expect)| {
        let with: String = setting.with.iter().map(|set| format!("--set {} ", quoted(set))).collect();
        let set = quoted(&format!("{}={value}", setting.path));
        let title = format!("{} {}={}", setting.with.join(" "), setting.path, value.escape_debug());
        Script::on_tables(
            AREA,
            title.trim(),
            Step::new(format!("show {file} {with}--set {set}"), *expect).names(name),
        )
    };
    // `fet` knows the number of classes only after it has read the data.
    let known = |(value, _): &&(&str, Expect)| name != "class_weights" || *value != "[]";
    // The default value is not a change.
    let changes = |(value, _): &&(&str, Expect)| *value != default;
    values.iter().filter(known).filter(changes).map(case).collect()
}

/// Parses the settings of an experiment from the output of `fet show`. Skips settings in arrays of tables,
/// which `--set` cannot reach.
fn parse_settings(text: &str) -> Vec<Setting> {
    let (mut section, mut skipped, mut found) = (String::new(), false, Vec::new());
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            skipped = header.starts_with('[');
            section = header.trim_matches(['[', ']']).to_string();
        } else if let Some((name, default)) = line.split_once(" = ").filter(|_| !skipped) {
            let path = if section.is_empty() { name.to_string() } else { format!("{section}.{name}") };
            found.push(Setting { with: Vec::new(), path, default: default.to_string() });
        }
    }
    found
}

/// Parses the settings of a slot's plug-ins from the output of `fet list`, where they are indented below the
/// plug-in's name.
fn listed(slot: &str, text: &str) -> Vec<Setting> {
    let (mut with, mut section, mut found) = (Vec::new(), String::new(), Vec::new());
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let words = line.trim();
        if depth <= 4 {
            with = vec![format!("{slot}.kind={}", words.split_whitespace().next().unwrap_or_default())];
            section.clear();
        } else if let Some(header) = words.strip_prefix('[') {
            section = format!("{}.", header.trim_end_matches(']'));
        } else if let Some((name, default)) = words.split_once(" = ").filter(|(name, _)| !name.contains(' '))
        {
            let path = format!("{slot}.{section}{name}");
            let own = Setting { with: with.clone(), path, default: default.to_string() };
            // The following settings belong to an inner plug-in and depend on its kind.
            with.extend((name == "kind").then(|| format!("{}={default}", own.path)));
            found.push(own);
        }
    }
    found
}
