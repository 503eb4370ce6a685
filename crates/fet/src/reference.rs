//! `fet manual --markdown`: the reference of settings as Markdown pages. `docs/reference` holds the pages of
//! this version.
//!
//! Everything except each page's introduction is generated from the settings' types ([`fet_core::schema`]).

use std::fmt::Write;

use fet_core::schema::{LEFT_OUT, Setting};

use crate::help;
use crate::list::{self, PluginEntry};
use crate::parties::PartyFileKind;

/// One page of the reference.
struct Page {
    /// File name.
    file: &'static str,
    title: &'static str,
    /// Content of the page, for the list of pages.
    content: &'static str,
    /// Introduction, in Markdown.
    introduction: &'static str,
    body: Body,
}

/// Generated part of a page.
enum Body {
    /// Settings of one table of an experiment, which is empty for the settings outside all tables.
    Table(&'static str),
    /// Plug-ins of a slot.
    Slot(&'static str),
    /// Settings of the files of parties on separate machines.
    PartyFiles,
}

/// File name of the list of pages.
const INDEX: &str = "README.md";

/// Comment at the start of each page.
const NOTICE: &str = "<!-- `cargo xtask reference` writes this page from the program's settings. -->";

const PAGES: [Page; 16] = [
    Page {
        file: "experiment.md",
        title: "Experiment",
        content: "name, seed, device: the settings outside all tables",
        introduction: "\
These settings come before the first table of an experiment file.
An experiment file may also contain the following settings and tables:

- `extends`: another experiment in the same folder; the file then lists only the differences.
- `[ablation]`, `[profile]` and `[tune]`: a study ([your first ablation](../first-ablation.md)) and a search over
  settings ([guide](../worth-it.md#tune-every-method-with-the-same-budget)).",
        body: Body::Table(""),
    },
    Page {
        file: "data.md",
        title: "Datasets",
        content: "the parties' tables: their files, keys and columns",
        introduction: "\
The table `[data]` names the tables of all parties.
Every experiment must set `data.kind`.
Each secondary of `linked` is one table `[[data.secondaries]]`.
The dataset `split` divides one table among simulated parties; its table comes from a [source](source.md).

[Tables](../tables.md) explains kinds of columns, dates and amounts.",
        body: Body::Slot("data"),
    },
    Page {
        file: "source.md",
        title: "Sources",
        content: "the table that the dataset `split` divides",
        introduction: "\
The table `[data.source]` belongs to the dataset [`split`](data.md#split).
With this dataset every experiment must set `data.source.kind`.",
        body: Body::Slot("data.source"),
    },
    Page {
        file: "split.md",
        title: "Split",
        content: "training, validation and test records",
        introduction: "[Evaluate a model](../evaluate.md#split) explains the choice of a split.",
        body: Body::Table("split"),
    },
    Page {
        file: "linker.md",
        title: "Linkers",
        content: "the search for the records that belong together",
        introduction: "\
The table `[linker]` chooses the linker.
Every linker reveals the links to the secondary; the lists below name further disclosures.

[Choosing a linker](../choosing-a-linker.md) helps with the choice.
[Linkers](../linkers.md) explains equal keys, missing cells, match weights and large tables.",
        body: Body::Slot("linker"),
    },
    Page {
        file: "method.md",
        title: "Methods",
        content: "the split model: the Federated Transformer and its baselines",
        introduction: "\
The table `[method]` chooses the model that the parties train together.
[Studies and methods](../studies.md#the-methods) compares the methods.",
        body: Body::Slot("method"),
    },
    Page {
        file: "encoder.md",
        title: "Encoders",
        content: "a secondary's local model",
        introduction: "\
The table `[encoder]` chooses the model that turns a secondary's linked records into a representation.
The method chooses the default.",
        body: Body::Slot("encoder"),
    },
    Page {
        file: "aggregator.md",
        title: "Aggregators",
        content: "the combination of the parties' representations",
        introduction: "\
The table `[aggregator]` chooses the combination of all parties' representations.
The method chooses the default.
[Privacy for engineers](../privacy.md) explains secure aggregation.",
        body: Body::Slot("aggregator"),
    },
    Page {
        file: "privacy.md",
        title: "Privacy mechanisms",
        content: "clipping and noise of a secondary's representations",
        introduction: "\
The table `[privacy]` chooses the protection of the secondaries' records.
[Privacy for engineers](../privacy.md) explains the meaning of ε and the cost of each protection.",
        body: Body::Slot("privacy"),
    },
    Page {
        file: "labels.md",
        title: "Label protections",
        content: "noise on the primary's labels or gradients",
        introduction: "\
The table `[labels]` chooses the protection of the primary's training labels.
Only the primary sets it.
[Privacy for engineers](../privacy.md#labels) explains the protections.",
        body: Body::Slot("labels"),
    },
    Page {
        file: "release.md",
        title: "Releases",
        content: "noisy columns that a secondary discloses once, in place of taking part in the training",
        introduction: "\
The table `[release]` lets each secondary disclose noisy numbers once; without the table there is none.
The primary adds the columns that it derives from them to its own columns.
[Private releases](../private-releases.md) explains the meaning of ε and the choice of ranges.",
        body: Body::Slot("release"),
    },
    Page {
        file: "train.md",
        title: "Training",
        content: "epochs, batches, learning rate and computation",
        introduction: "The table `[train]` sets the length of a run, its batches and its computation.",
        body: Body::Table("train"),
    },
    Page {
        file: "scores.md",
        title: "Scores",
        content: "the metric that selects the epoch, scores by group, intervals",
        introduction: "[Evaluate a model](../evaluate.md#metric) explains the scores of a run.",
        body: Body::Table("scores"),
    },
    Page {
        file: "attack.md",
        title: "Attacks",
        content: "attacks on a finished run, to measure leakage",
        introduction: "\
The table `[attack]` names an attack that follows the run; without the table there is none.
`fet attack FILE --attack NAME` runs one attack on any experiment.
[Privacy for engineers](../privacy.md#attacks-and-audits) explains the results.",
        body: Body::Slot("attack"),
    },
    Page {
        file: "policy.md",
        title: "Policy",
        content: "a party's limits on the primary's requests",
        introduction: "\
The table `[policy]` of a party's [own file](party.md) limits the primary's requests, whatever the experiment says.
In an experiment it applies to all secondaries of a simulation.
[Parties on separate machines](../deploy.md#policy) explains the choice.",
        body: Body::Table("policy"),
    },
    Page {
        file: "party.md",
        title: "Files of a party",
        content: "a party's own file and the roster, for parties on separate machines",
        introduction: "\
A party on its own machine reads two files in addition to the experiment.
[Parties on separate machines](../deploy.md) has an example of each.
[The owner's approval](../approval.md) explains the table `[approval]`.
`fet help party.most_programs` and `fet help roster.server` print the same at the prompt.
Paths are relative to the file that contains them.",
        body: Body::PartyFiles,
    },
];

/// Returns all pages with their file names.
pub fn pages() -> Vec<(&'static str, String)> {
    let (settings, entries) = (help::all_settings(), list::entries());
    let mut pages = vec![(INDEX, index())];
    pages.extend(PAGES.iter().map(|page| (page.file, text(page, &settings, &entries))));
    pages
}

/// Returns the page that lists the other pages.
fn index() -> String {
    let mut out = format!(
        "{NOTICE}\n\n\
         # Settings\n\n\
         These pages list every setting and plug-in of the program with defaults and allowed values.\n\
         `fet list SLOT` and `fet help SETTING` print the same at the prompt, as in `fet help linker.clk.bits`.\n\
         `fet schema` prints a JSON schema, with which editors complete and check experiment files;\n\
         `fet schema roster` and `fet schema party` print those of the parties' files.\n\
         `fet show FILE` prints an experiment with all its defaults.\n\n\
         | page | content |\n|---|---|\n"
    );
    for page in &PAGES {
        let _ = writeln!(out, "| [{}]({}) | {} |", page.title, page.file, page.content);
    }
    out
}

fn text(page: &Page, settings: &[Setting], entries: &[PluginEntry]) -> String {
    let mut out = format!("{NOTICE}\n\n# {}\n\n{}\n", page.title, page.introduction);
    match page.body {
        Body::Table(table) => {
            let prefix = if table.is_empty() { String::new() } else { format!("{table}.") };
            settings_table(&list::settings_of_table(settings, &prefix), &prefix, &mut out);
        }
        Body::Slot(slot) => {
            let kind = settings.iter().find(|setting| setting.path == list::kind_of(slot));
            let default = kind.and_then(|kind| kind.default.as_deref()).unwrap_or_default();
            let plugins = || entries.iter().filter(|entry| entry.slot == slot);
            let _ = writeln!(out, "\n| `{slot}.kind` | plug-in |\n|---|---|");
            for entry in plugins() {
                let mark = if default == format!("\"{}\"", entry.kind) { " (default)" } else { "" };
                let _ = writeln!(out, "| [`{0}`](#{0}){mark} | {1} |", entry.kind, cell(entry.summary));
            }
            for entry in plugins() {
                let _ = writeln!(out, "\n## {}\n\n{}.", entry.kind, capitalised(entry.summary));
                if !entry.reveals.is_empty() {
                    out.push('\n');
                }
                for line in &entry.reveals {
                    let _ = writeln!(out, "- {}.", capitalised(line));
                }
                let prefix = list::settings_prefix(entry);
                settings_table(&list::settings_of_table(settings, &prefix), &prefix, &mut out);
            }
        }
        Body::PartyFiles => {
            for kind in PartyFileKind::ALL {
                let title = match kind {
                    PartyFileKind::Party => "Own file",
                    PartyFileKind::Roster => "Roster",
                };
                let _ = writeln!(out, "\n## {title}");
                let settings = kind.settings();
                let elsewhere = |setting: &&Setting| {
                    setting.path.starts_with("party.policy.") || setting.path.starts_with("party.data.")
                };
                let own: Vec<&Setting> = settings.iter().filter(|setting| !elsewhere(setting)).collect();
                settings_table(&own, &format!("{}.", kind.name()), &mut out);
                if kind == PartyFileKind::Party {
                    out += "\nThe table `[policy]` has the settings of [Policy](policy.md).\n\
                            The table `[data]` is the party's own table, in place of the table in the experiment.\n\
                            It has the settings of `data.secondaries` in [Datasets](data.md#linked).\n";
                }
            }
        }
    }
    out
}

/// Writes a table of settings, whose names follow `prefix` in their paths.
fn settings_table(settings: &[&Setting], prefix: &str, out: &mut String) {
    if settings.is_empty() {
        out.push_str("\nThere are no settings.\n");
        return;
    }
    out.push_str("\n| setting | value | default | meaning |\n|---|---|---|---|\n");
    for setting in settings {
        let name = &setting.path[prefix.len()..];
        let _ = writeln!(
            out,
            "| `{name}` | {} | {} | {} |",
            cell(&value(setting)),
            default(setting),
            meaning(setting)
        );
    }
}

/// Returns the allowed values of a setting.
fn value(setting: &Setting) -> String {
    if setting.choices.is_empty() {
        return setting.allowed.clone();
    }
    let names: Vec<String> = setting.choices.iter().map(|(name, _)| format!("`\"{name}\"`")).collect();
    names.join(", ")
}

/// Returns the cell of a setting's default.
fn default(setting: &Setting) -> String {
    match setting.default.as_deref() {
        None => "required".into(),
        Some(LEFT_OUT) => "none".into(),
        // Other words than a TOML value, as for the default that the method chooses.
        Some(words) if format!("x = {words}").parse::<toml::Table>().is_err() => cell(words),
        Some(value) => cell(&format!("`{value}`")),
    }
}

/// Returns the cell of a setting's meaning, with the meaning of each choice. The names of inner plug-ins get
/// no meanings, because the page of their slot has them.
fn meaning(setting: &Setting) -> String {
    let mut out = cell(&setting.meaning);
    let choices = if setting.path.ends_with(".inner.kind") { &[][..] } else { &setting.choices };
    for (name, meaning) in choices {
        let _ = write!(out, "<br>`\"{name}\"`: {}", cell(meaning));
    }
    out
}

/// Escapes text for the cell of a table: bars everywhere, and outside code the signs of HTML and emphasis.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_code = false;
    for c in text.chars() {
        match c {
            '`' => in_code = !in_code,
            '|' => out.push('\\'),
            '<' | '*' if !in_code => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Returns the text with a capital first letter.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn setting(allowed: &str, default: Option<&str>, choices: &[(&str, &str)]) -> Setting {
        Setting {
            path: "train.decay".into(),
            meaning: "Schedule of <x> | y.".into(),
            allowed: allowed.into(),
            choices: choices.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(),
            default: default.map(String::from),
            source: String::new(),
            schema: Value::Null,
        }
    }

    #[test]
    fn rows_hold_values_defaults_and_the_meaning_of_choices() {
        for (setting, expected) in [
            (
                setting("a number, above 0", Some("1.5"), &[]),
                "| `decay` | a number, above 0 | `1.5` | Schedule of \\<x> \\| y. |",
            ),
            (
                setting("one of", Some("\"a\""), &[("a", "One *star*."), ("b", "Two `<s>`.")]),
                "| `decay` | `\"a\"`, `\"b\"` | `\"a\"` | Schedule of \\<x> \\| y.<br>`\"a\"`: One \\*star\\*.\
                 <br>`\"b\"`: Two `<s>`. |",
            ),
            (setting("a text", None, &[]), "| `decay` | a text | required | Schedule of \\<x> \\| y. |"),
            (
                setting("a text", Some(LEFT_OUT), &[]),
                "| `decay` | a text | none | Schedule of \\<x> \\| y. |",
            ),
            (
                setting("a text", Some("chosen by the method"), &[]),
                "| `decay` | a text | chosen by the method | Schedule of \\<x> \\| y. |",
            ),
        ] {
            let mut out = String::new();
            settings_table(&[&setting], "train.", &mut out);
            assert_eq!(out.lines().last(), Some(expected));
        }
    }

    #[test]
    fn pages_hold_every_setting_and_plugin_once() {
        let pages = pages();
        let rows = |text: &str| {
            text.lines().filter(|line| line.starts_with("| `") && !line.contains(".kind` | plug-in")).count()
        };
        let found: usize = pages.iter().map(|(_, text)| rows(text)).sum();
        // Other pages have the settings of a party's policy and table.
        let files = help::file_settings()
            .iter()
            .filter(|setting| {
                !["party.policy.", "party.data."].iter().any(|table| setting.path.starts_with(table))
            })
            .count();
        // A page of a slot lists its `kind` with the plug-ins.
        let slots = PAGES.iter().filter(|page| matches!(page.body, Body::Slot(_))).count();
        assert_eq!(found, help::all_settings().len() - slots + files);
        let plugins: usize = pages.iter().map(|(_, text)| text.matches("\n## ").count()).sum();
        assert_eq!(plugins, list::entries().len() + PartyFileKind::ALL.len());
    }
}
