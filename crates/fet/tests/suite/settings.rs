//! Tests every setting of every plug-in: it has a help text, its range is enforced, and editors know it.

use std::path::{Path, PathBuf};
use std::process::Command;

use fet::parties::PartyFileKind;
use fet::schema::{self, SchemaFile};
use fet::{help, list};
use fet_core::experiment::Experiment;
use fet_core::schema::{KINDS, Setting, check};
use serde_json::Value;

/// Settings that a party's own file and the roster must have.
const REQUIRED_IN_FILES: [&str; 11] = [
    "party.party",
    "party.roster",
    "party.experiment",
    "party.key",
    "party.state",
    "roster.run",
    "roster.server",
    "roster.primary.name",
    "roster.primary.identity",
    "roster.parties.name",
    "roster.parties.identity",
];

#[test]
fn every_setting_has_help() {
    let mut all = help::all_settings();
    assert!(all.len() > 200, "only {} settings", all.len());
    all.extend(help::file_settings());
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
            .contains(&path.as_str())
            || REQUIRED_IN_FILES.contains(&path.as_str());
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

/// Returns a table with one setting of a schema, in the plug-ins that its path names.
fn table_with(path: &str, value: toml::Value, schema: &Value) -> toml::Table {
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
    put(&mut table, &path.split('.').collect::<Vec<_>>(), schema, value);
    table
}

/// Returns the error of an experiment with only this setting.
fn error_of(path: &str, value: toml::Value) -> String {
    Experiment::from_table(table_with(path, value, Experiment::schema()))
        .expect_err("there is no name")
        .to_string()
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
    let all = [help::all_settings(), help::file_settings()].concat();
    texts.extend(all.iter().map(|setting| help::text(&setting.path).expect("help")));
    texts.extend(PartyFileKind::ALL.map(|kind| help::text(kind.name()).expect("help")));
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

/// The settings of the parties' files have help under the name of their file, and do not hide settings of an experiment.
#[test]
fn finds_settings_of_the_parties_files() {
    let paths = |topic: &str| -> Vec<String> {
        let text = help::text(topic).expect(topic);
        let first = |line: &str| line.split(' ').next().unwrap_or_default().to_string();
        text.lines().filter(|line| !line.starts_with([' ', '`']) && !line.is_empty()).map(first).collect()
    };
    assert_eq!(paths("party.most_programs"), ["party.most_programs"]);
    assert_eq!(paths("most_programs"), ["party.most_programs"]);
    assert_eq!(paths("roster.parties[1].identity"), ["roster.parties.identity"]);
    assert_eq!(paths("party.roster"), ["party.roster"]);
    assert_eq!(paths("party.data.file"), ["party.data.file"]);
    assert_eq!(paths("hub.port"), ["roster.hub.port"]);
    // An experiment has these names as well.
    assert_eq!(paths("least_rows"), ["policy.least_rows"]);
    assert_eq!(paths("party.policy.least_rows"), ["party.policy.least_rows"]);
    assert_eq!(paths("device"), ["device"]);
    assert_eq!(paths("backdoor.party"), ["attack.backdoor.party"]);
    for kind in PartyFileKind::ALL {
        let all: Vec<String> = kind.settings().into_iter().map(|setting| setting.path).collect();
        assert_eq!(paths(kind.name()), all);
        let hidden = help::all_settings().into_iter().find(|s| s.path.split('.').next() == Some(kind.name()));
        assert_eq!(hidden.map(|setting| setting.path), None);
    }
    for (topic, parts) in [
        ("party.most_programs", ["at least 1 and at most 1000", "default  8", "fet::parties::setup"]),
        ("party.policy.most_delta", ["above 0 and below 1", "default  0.00001", "Choose it"]),
        ("party.device", ["\"flex\"", "default  left out", "Compute device"]),
        ("party.data.scaling", ["\"robust\"", "default  \"standard\"", "fet_data::dataset::linked"]),
        ("roster.server", ["tls://HOST:PORT", "default  none; required", "fet::parties::roster"]),
        ("roster.ca", ["a text in quotes", "default  left out", "PEM"]),
        ("roster.wait", ["a whole number, at least 0", "default  600", "in seconds"]),
    ] {
        let text = help::text(topic).expect(topic);
        for part in parts {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
    let error = help::text("roster.serve").expect_err("no such setting");
    assert!(error.contains("did you mean \"roster.server\"?"), "{error}");
    let help =
        Command::new(env!("CARGO_BIN_EXE_fet")).args(["help", "party"]).output().expect("the program runs");
    let help = String::from_utf8(help.stdout).expect("text");
    assert!(help.contains("Usage: fet party") && help.contains("\nparty.most_programs = 8\n"), "{help}");
}

/// Reads a party's file as its commands do; returns the error.
fn error_of_file(kind: PartyFileKind, table: &toml::Table) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file.toml"), table.to_string()).expect("a file");
    let command = match kind {
        PartyFileKind::Party => ["party", "check", "file.toml"],
        PartyFileKind::Roster => ["keys", "roster", "file.toml"],
    };
    let mut program = Command::new(env!("CARGO_BIN_EXE_fet"));
    let output = program.args(command).current_dir(folder.path()).output().expect("the program runs");
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{error}");
    error
}

#[test]
fn refuses_wrong_values_in_the_parties_files() {
    for kind in PartyFileKind::ALL {
        // The experiment reads the party's own table.
        for Setting { path, schema, .. } in
            kind.settings().into_iter().filter(|setting| !setting.path.starts_with("party.data."))
        {
            let path = path.split_once('.').expect("the name of the file").1;
            let mut wrong: Vec<toml::Value> = vec![match schema["type"].as_str() {
                Some("string") => 7.into(),
                _ => "wide".into(),
            }];
            for (word, out) in
                [("minimum", -1.0), ("maximum", 1.0), ("exclusiveMinimum", 0.0), ("exclusiveMaximum", 0.0)]
            {
                wrong.extend(schema.get(word).and_then(Value::as_f64).map(|bound| {
                    match schema["type"] == "integer" {
                        true => ((bound + out) as i64).into(),
                        false => toml::Value::from(bound + out),
                    }
                }));
            }
            let known = table_with(path, "wide".into(), &kind.schema());
            for value in wrong {
                let error = error_of_file(kind, &table_with(path, value.clone(), &kind.schema()));
                let name = path.rsplit('.').next().expect("a name");
                assert!(error.contains(&format!("{name}` must be ")), "{path} = {value}: {error}");
            }
            // A wrong name is one letter longer.
            let known = known.to_string();
            let name = path.rsplit('.').next().expect("a name");
            let unknown = known.replace(&format!("{name} = \"wide\""), &format!("{name}x = \"wide\""));
            assert_ne!(unknown, known);
            let error = error_of_file(kind, &unknown.parse().expect("TOML"));
            let expected = format!("{name}x` is not a setting; did you mean \"{name}\"?");
            assert!(error.contains(&expected), "{path}: {error}");
        }
    }
}

/// TOML language server with the schema in a file.
struct Editor {
    taplo: PathBuf,
    folder: tempfile::TempDir,
}

impl Editor {
    fn open(file: SchemaFile) -> Option<Self> {
        let Some(taplo) = std::env::var_os("FET_TAPLO") else {
            fet_testing::left_out("taplo", "FET_TAPLO names no TOML language server");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("schema.json"), schema::of_file(file).to_string())
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
    let Some(editor) = Editor::open(SchemaFile::Experiment) else { return };
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
    let Some(editor) = Editor::open(SchemaFile::Experiment) else { return };
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

#[test]
fn editors_know_the_parties_files() {
    let (Some(roster), Some(party)) = (Editor::open(SchemaFile::Roster), Editor::open(SchemaFile::Party))
    else {
        return;
    };
    let member = "name = \"a\"\nidentity = \"0\"\n";
    let good_roster =
        format!("run = \"r\"\nserver = \"tls://a:1\"\n[primary]\n{member}[[parties]]\n{member}");
    let good_party = "party = \"a\"\nroster = \"r\"\nexperiment = \"e\"\nkey = \"k\"\nstate = \"s\"\n\
                      [data]\nfile = \"a.csv\"\nkeys = [\"x\"]\n[policy]\nleast_rows = 100\n";
    for (editor, good, lines, part) in [
        (&roster, good_roster.as_str(), "[hub]\nport = 70000", "70000 is greater than the maximum of 65535"),
        (&roster, &good_roster, "[hub]\nports = 7", "'ports' was unexpected"),
        (&roster, &good_roster, "[[parties]]\nname = \"b\"", "\"identity\" is a required property"),
        (&party, good_party, "predictons = true", "'predictons' was unexpected"),
        (&party, good_party, "most_delta = 2", "2 is greater than or equal to the maximum of 1"),
        (&party, good_party, "[monitor]\nlisten = 1", "is not of type"),
    ] {
        let (accepted, said) = editor.lint_text(good);
        assert!(accepted, "{said}");
        let (accepted, said) = editor.lint_text(&format!("{good}{lines}\n"));
        assert!(!accepted && said.contains(part), "{lines}\n{said}");
    }
    let (accepted, said) = party.lint_text("party = \"a\"\n");
    assert!(!accepted && said.contains("\"state\" is a required property"), "{said}");
    let (accepted, said) = party.lint_text(&good_party.replace("file = ", "fil = "));
    assert!(!accepted && said.contains("'fil' was unexpected"), "{said}");
    let (accepted, said) = party.lint_text(&format!("device = \"gpux\"\n{good_party}"));
    assert!(!accepted && said.contains("is not one of"), "{said}");
}
