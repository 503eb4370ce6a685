//! Tests every setting of every plug-in: it has a help text, its range is enforced, and editors know it.

use std::path::{Path, PathBuf};
use std::process::Command;

use fet::{help, list, schema};
use fet_core::experiment::Experiment;
use fet_core::schema::{KINDS, Setting, check};
use serde_json::Value;

#[test]
fn every_setting_has_help() {
    let all = help::all_settings();
    assert!(all.len() > 200, "only {} settings", all.len());
    let mut faults = Vec::new();
    for Setting { path, meaning, allowed, choices, default, source, schema } in &all {
        let mut is = |right: bool, what: &str| {
            if !right {
                faults.push(format!("{path}: {what}"));
            }
        };
        is(meaning.len() >= 12 && meaning.ends_with('.'), &format!("the meaning is {meaning:?}"));
        is(!meaning.contains("[`") && !meaning.contains('\n'), &format!("the meaning is {meaning:?}"));
        is(
            !allowed.is_empty() && !allowed.contains("something else"),
            &format!("the allowed values are {allowed:?}"),
        );
        is(source.contains("::"), &format!("the source is {source:?}"));
        for (name, meaning) in choices {
            is(!meaning.is_empty(), &format!("what does {name:?} mean?"));
        }
        let must = ["name", "data.kind", "attack.kind", "release.kind", "data.split.source.kind"]
            .contains(&path.as_str());
        is(default.is_none() == must, &format!("the default is {default:?}"));
        let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "x-rule"];
        let bounded = bounds.iter().any(|word| schema.get(word).is_some());
        is(schema["type"] != "number" || bounded, "there is no range");
        // The help text of each setting contains the facts that the test requires above.
        let text = help::text(path).unwrap_or_default();
        is(text.starts_with(path.as_str()) && text.contains("  allowed  "), &format!("the help is {text:?}"));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns a table with one setting, in the plug-ins that its path names.
fn table_with(path: &str, value: toml::Value) -> toml::Table {
    fn put(table: &mut toml::Table, parts: &[&str], schema: &Value, value: toml::Value) {
        let (&name, rest) = parts.split_first().expect("a name");
        let below = &schema["properties"][name];
        if rest.is_empty() {
            table.insert(name.into(), value);
        } else if let Some(settings) = below.get(KINDS).and_then(|kinds| kinds.get(rest[0])) {
            let mut slot = toml::Table::new();
            slot.insert("kind".into(), rest[0].into());
            put(&mut slot, &rest[1..], settings, value);
            table.insert(name.into(), slot.into());
        } else {
            let mut inner = toml::Table::new();
            let items = below.get("items").filter(|_| below["type"] == "array");
            put(&mut inner, rest, items.unwrap_or(below), value);
            let inner: toml::Value = inner.into();
            table.insert(name.into(), if items.is_some() { vec![inner].into() } else { inner });
        }
    }
    let mut table = toml::Table::new();
    put(&mut table, &path.split('.').collect::<Vec<_>>(), Experiment::schema(), value);
    table
}

/// Returns the error of an experiment with only this setting.
fn error_of(path: &str, value: toml::Value) -> String {
    Experiment::from_table(table_with(path, value)).expect_err("there is no name").to_string()
}

#[test]
fn every_range_is_enforced() {
    let mut bounds = 0;
    for Setting { path, schema, .. } in help::all_settings() {
        let whole = schema["type"] == "integer";
        let step = |bound: f64, by: f64| -> toml::Value {
            if whole {
                ((bound + by) as i64).into()
            } else {
                (bound + by * 1e-3 * bound.abs().max(1.0)).into()
            }
        };
        // Values just outside and just inside each bound.
        for (word, out) in
            [("minimum", -1.0), ("maximum", 1.0), ("exclusiveMinimum", -1.0), ("exclusiveMaximum", 1.0)]
        {
            let Some(bound) = schema.get(word).and_then(Value::as_f64) else { continue };
            bounds += 1;
            let outside = if word.starts_with("exclusive") { step(bound, 0.0) } else { step(bound, out) };
            let inside = if word.starts_with("exclusive") { step(bound, -out) } else { step(bound, 0.0) };
            let name = path.rsplit('.').next().expect("a name");
            let error = error_of(&path, outside.clone());
            assert!(error.contains(name) && error.contains(" must be "), "{path} = {outside}: {error}");
            assert!(error.contains(&format!("; it is {outside}")), "{path} = {outside}: {error}");
            let error = error_of(&path, inside.clone());
            assert!(!error.contains(name) || error.contains("missing"), "{path} = {inside}: {error}");
        }
    }
    assert!(bounds > 100, "only {bounds} bounds");
}

#[test]
fn every_type_is_enforced() {
    for Setting { path, schema, .. } in help::all_settings() {
        let wrong: toml::Value = match schema["type"].as_str() {
            Some("string") => 7.into(),
            Some("integer" | "number" | "boolean" | "array" | "object") => "wide".into(),
            _ => toml::Value::Datetime("2024-01-01".parse().expect("a date")),
        };
        let error = error_of(&path, wrong.clone());
        let name = path.rsplit('.').next().expect("a name");
        assert!(error.contains(name) && error.contains(" must be "), "{path} = {wrong}: {error}");
    }
}

#[test]
fn defaults_are_allowed() {
    let schema = Experiment::schema();
    for entry in list::entries().iter().filter(|entry| entry.slot != "data.source") {
        let mut table = entry.defaults.clone();
        table.insert("kind".into(), entry.kind.into());
        let whole = toml::Table::from_iter([(entry.slot.to_string(), toml::Value::from(table))]);
        let error = check(&whole, schema).expect_err("there is no name").to_string();
        // A data table and the name of an experiment lack defaults.
        assert!(error.starts_with("`name` is missing"), "{}.{}: {error}", entry.slot, entry.kind);
    }
}

#[test]
fn help_and_lists_fit_in_a_terminal() {
    let mut texts = vec![list::text(None).expect("the list")];
    texts.extend(help::all_settings().iter().map(|setting| help::text(&setting.path).expect("help")));
    for line in texts.iter().flat_map(|text| text.lines()) {
        let unbroken = line.split_whitespace().any(|word| word.chars().count() > help::WIDTH - 20);
        assert!(line.chars().count() <= help::WIDTH || unbroken, "{line}");
    }
}

#[test]
fn finds_topics_by_parts_of_their_names() {
    let paths = |topic: &str| -> Vec<String> {
        let text = help::text(topic).expect(topic);
        text.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).map(String::from).collect()
    };
    assert_eq!(paths("train.decay"), ["train.decay"]);
    assert_eq!(paths("linker.bits"), ["linker.clk.bits", "linker.federal.bits"]);
    assert_eq!(paths("data.secondaries[0].file"), ["data.linked.secondaries.file"]);
    assert!(paths("train").iter().any(|line| line == "train.epochs = 20"));
    assert!(paths("clk").iter().all(|line| line.starts_with("linker.clk.") || line.starts_with("`fet")));
    let error = help::text("train.decya").expect_err("no such setting");
    assert!(error.contains("did you mean \"train.decay\"?"), "{error}");
    let decay = help::text("train.decay").expect("help");
    for part in
        ["one of \"plateau\", \"cosine\"", "Loshchilov", "default  \"plateau\"", "fet_core::experiment"]
    {
        assert!(decay.contains(part), "{part} in {decay}");
    }
}

/// TOML language server with the schema in a file.
struct Editor {
    taplo: PathBuf,
    folder: tempfile::TempDir,
}

impl Editor {
    fn open() -> Option<Self> {
        let Some(taplo) = std::env::var_os("FET_TAPLO") else {
            fet_testing::left_out("taplo", "FET_TAPLO names no TOML language server");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("schema.json"), schema::for_editors().to_string())
            .expect("the schema");
        Some(Self { taplo: taplo.into(), folder })
    }

    /// Returns true if the editor accepts a file, and its messages.
    fn lint(&self, file: &Path) -> (bool, String) {
        let schema = format!("file://{}", self.folder.path().join("schema.json").display());
        let output = Command::new(&self.taplo)
            .args(["lint", "--no-auto-config", "--colors", "never", "--schema", &schema])
            .arg(file)
            .output()
            .expect("taplo runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn lint_text(&self, text: &str) -> (bool, String) {
        let file = self.folder.path().join("mine.toml");
        std::fs::write(&file, text).expect("a file");
        self.lint(&file)
    }
}

#[test]
fn editors_accept_every_experiment() {
    let Some(editor) = Editor::open() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files = 0;
    for folder in [folder.join("benchmark"), folder] {
        for file in std::fs::read_dir(folder).expect("experiments") {
            let file = file.expect("a file").path();
            if file.is_file() {
                let (accepted, said) = editor.lint(&file);
                assert!(accepted, "{said}");
                files += 1;
            }
        }
    }
    assert!(files > 20, "only {files}");
}

#[test]
fn editors_underline_errors() {
    let Some(editor) = Editor::open() else { return };
    let good = "name = \"mine\"\n[data]\nkind = \"split\"\n[data.source]\nkind = \"digits\"\n";
    assert!(editor.lint_text(good).0, "{}", editor.lint_text(good).1);
    // Broken lines, with the parts that the editor underlines.
    for (lines, line, part) in [
        ("[train]\ndecay = \"cosin\"", 7, "is not one of"),
        ("[train]\nepoch = 3", 6, "Additional properties are not allowed ('epoch' was unexpected)"),
        ("[train]\nepochs = 0", 7, "0 is less than the minimum of 1"),
        ("[train]\nepochs = \"many\"", 7, "is not of type"),
        ("[linker]\nkind = \"clk\"\nbits = 7", 8, "7 is less than the minimum of 128"),
        ("[linker]\nneighbour = 3", 6, "'neighbour' was unexpected"),
        ("[linker]\nkind = \"clok\"", 7, "is not one of"),
        ("[method]\nkind = \"solo\"\nheads = 3", 6, "'heads' was unexpected"),
        ("device = 1", 6, "is not of type"),
    ] {
        let text =
            if lines.starts_with('[') { format!("{good}{lines}\n") } else { format!("{lines}\n{good}") };
        let line = if lines.starts_with('[') { line } else { 1 };
        let (accepted, said) = editor.lint_text(&text);
        assert!(!accepted && said.contains(part), "{lines}\n{said}");
        assert!(said.contains(&format!("mine.toml:{line}:")), "{lines}: line {line}\n{said}");
    }
    let (accepted, said) = editor.lint_text("seed = 1\n");
    assert!(!accepted && said.contains("\"name\" is a required property"), "{said}");
}
