//! `fet help`: the meaning of a setting, its possible values, its default and the source of the default.
//!
//! All texts are generated from the settings' types ([`fet_core::schema`]).

use std::fmt::Write;

use fet_core::experiment::Experiment;
use fet_core::registry::did_you_mean;
use fet_core::schema::{Setting, settings};

use crate::parties::PartyFileKind;

/// Maximum width of a line, which fits every terminal.
pub const WIDTH: usize = 80;

/// Maximum number of settings that are explained in full; if there are more, each setting gets one line.
const WHOLE: usize = 4;

/// Returns the help on a topic: a setting (`train.decay`, `linker.clk.bits`, `bits`), a table of settings
/// (`train`, `data.primary`), a plug-in (`clk`), or a setting of the parties' files (`roster.server`,
/// `party.policy`). A name without its file means a setting of the experiment, if the experiment has one.
///
/// # Errors
/// Returns a message with similar topics if there is no such topic.
pub fn text(topic: &str) -> Result<String, String> {
    let (all, of_files) = (all_settings(), file_settings());
    let of_file: Vec<Setting> =
        of_files.iter().filter(|setting| first(&setting.path) == first(topic)).cloned().collect();
    let found = match find(&all, topic) {
        _ if names_file(topic) => of_file.iter().collect(),
        _ if !of_file.is_empty() => find(&of_file, topic),
        found if found.is_empty() => find(&of_files, topic),
        found => found,
    };
    if found.is_empty() {
        let names =
            all.iter().chain(&of_files).flat_map(|setting| [setting.path.as_str(), last(&setting.path)]);
        let hint = did_you_mean(topic, names);
        return Err(format!(
            "there is no setting, plug-in or command \"{topic}\"{hint}; `fet list` names every setting of an experiment, `fet help party` \
             and `fet help roster` those of the parties' files"
        ));
    }
    let mut out = String::new();
    if found.len() <= WHOLE {
        for setting in found {
            if !out.is_empty() {
                out.push('\n');
            }
            write_setting(setting, &mut out);
        }
    } else {
        for setting in found {
            line(setting, 0, &setting.path, &mut out);
        }
        let _ = writeln!(out, "\n`fet help SETTING` lists the allowed values.");
    }
    Ok(out)
}

/// Returns every setting of an experiment, with every plug-in of this program.
pub fn all_settings() -> Vec<Setting> {
    let mut all = settings(Experiment::schema(), "");
    for setting in &mut all {
        if setting.source.is_empty() {
            setting.source = "fet_core::experiment".into();
        }
        if setting.path == "device" {
            let names = fet_backends::NAMES.map(|name| format!("\"{name}\"")).join(", ");
            setting.allowed = format!("one of {names}");
        }
        if matches!(setting.path.as_str(), "encoder.kind" | "aggregator.kind") {
            setting.default = Some("chosen by the method".into());
        }
    }
    all
}

/// Returns every setting of a party's own file and of the roster.
pub fn file_settings() -> Vec<Setting> {
    PartyFileKind::ALL.into_iter().flat_map(PartyFileKind::settings).collect()
}

/// Returns true if the topic is the name of a party's file: `party` or `roster`.
pub(crate) fn names_file(topic: &str) -> bool {
    PartyFileKind::ALL.iter().any(|kind| kind.name() == topic)
}

/// Returns the settings that a topic names: the setting with this path, else the settings whose path ends in
/// the topic, else the settings of the tables that it names.
fn find<'a>(all: &'a [Setting], topic: &str) -> Vec<&'a Setting> {
    let words: Vec<&str> = topic.split('.').map(|word| word.split('[').next().unwrap_or(word)).collect();
    let parts = |setting: &'a Setting| setting.path.split('.').collect::<Vec<_>>();
    let exact: Vec<_> = all.iter().filter(|setting| parts(setting) == words).collect();
    if !exact.is_empty() {
        return exact;
    }
    let ends = |setting: &&Setting| {
        let parts = setting.path.split('.').collect::<Vec<_>>();
        parts.last() == words.last() && in_order(&words, &parts)
    };
    let ending: Vec<_> = all.iter().filter(ends).collect();
    if !ending.is_empty() {
        return ending;
    }
    all.iter().filter(|setting| in_order(&words, &parts(setting))).collect()
}

/// Returns true if all words occur among the parts, in the same order.
fn in_order(words: &[&str], parts: &[&str]) -> bool {
    let mut parts = parts.iter();
    words.iter().all(|word| parts.any(|part| part == word))
}

fn first(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Writes the full description of a setting.
fn write_setting(setting: &Setting, out: &mut String) {
    let _ = writeln!(out, "{}", setting.path);
    paragraph(&setting.meaning, "  ", "  ", out);
    paragraph(&setting.allowed, "  allowed  ", "           ", out);
    for (name, meaning) in &setting.choices {
        let first = format!("    {name:<12} ");
        paragraph(meaning, &first, &" ".repeat(17), out);
    }
    let default = setting.default.as_deref().unwrap_or("none; required");
    paragraph(default, "  default  ", "           ", out);
    let _ = writeln!(out, "  source   {}", setting.source);
}

/// Writes a setting with its default and the first sentence of its meaning.
pub(crate) fn line(setting: &Setting, indent: usize, name: &str, out: &mut String) {
    let default = setting.default.as_deref().unwrap_or("(required)");
    let indent = " ".repeat(indent);
    let _ = writeln!(out, "{indent}{name} = {default}");
    let first = setting.meaning.split_inclusive(". ").next().unwrap_or_default();
    paragraph(first.trim_end(), &format!("{indent}    "), &format!("{indent}    "), out);
}

/// Wraps text at [`WIDTH`] columns.
pub(crate) fn paragraph(text: &str, first: &str, others: &str, out: &mut String) {
    let options = textwrap::Options::new(WIDTH).initial_indent(first).subsequent_indent(others);
    for line in textwrap::wrap(text, options) {
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
