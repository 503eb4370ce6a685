//! Tests a study with the real program: files of a crash or of another version do not stop it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use fet_study::{AblateArguments, Fet, ablate};

/// Command line of `cargo xtask ablate`.
#[derive(Debug, Parser)]
struct AblateCommandLine {
    #[command(flatten)]
    arguments: AblateArguments,
}

const STUDY: &str = r#"
name = "tiny"
[data]
kind = "split"
rows = 120
parties = 2
source = { kind = "digits" }
[linker]
kind = "nearest"
neighbours = 2
[method]
kind = "fet"
hidden = 8
heads = 2
[train]
epochs = 1
batch_size = 32
[ablation]
seeds = [0]
[[ablation.variants]]
name = "FeT"
[[ablation.variants]]
name = "Solo"
set = ["method.kind=solo"]
"#;

fn study(folder: &Path) -> String {
    let (file, out) = (folder.join("tiny.toml"), folder.join("runs"));
    fs::write(&file, STUDY).expect("writable");
    let words = ["ablate", &file.to_string_lossy(), "--out", &out.to_string_lossy()].map(str::to_string);
    let arguments = AblateCommandLine::parse_from(words).arguments;
    let fet = || Ok(Fet::new(env!("CARGO_BIN_EXE_fet").into(), Vec::new()));
    format!("{:?}", ablate(&arguments, fet).expect("a sound study"))
}

fn cell(folder: &Path, variant: &str) -> PathBuf {
    let cells = fs::read_dir(folder.join("runs/tiny/cells")).expect("cells");
    let mut cells = cells.map(|entry| entry.expect("a cell").path());
    cells
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(variant)))
        .expect("there")
}

/// Returns the results in a report: everything except the cost.
fn results(report: &Path) -> serde_json::Value {
    let text = fs::read_to_string(report).expect("a report");
    let mut report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    report.as_object_mut().expect("an object").remove("cost");
    report
}

#[test]
fn computes_a_cell_with_an_incomplete_report_again() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(study(folder.path()), "ExitCode(unix_exit_status(0))");
    for variant in ["fet", "solo"] {
        let cell = cell(folder.path(), variant);
        let path = cell.join("report.json");
        let (whole, expected) = (fs::read_to_string(&path).expect("a report"), results(&path));
        let without = {
            let mut report: serde_json::Value = serde_json::from_str(&whole).expect("JSON");
            report.as_object_mut().expect("an object").remove("warnings");
            report.to_string()
        };
        for damaged in [without.as_str(), &whole[..500], ""] {
            fs::write(&path, damaged).expect("writable");
            assert_eq!(study(folder.path()), "ExitCode(unix_exit_status(0))", "{variant}: {damaged:.20}");
            assert_eq!(results(&path), expected, "{variant}: {damaged:.20}");
            assert_eq!(fs::read_to_string(cell.join("report.old.json")).expect("kept"), damaged);
        }
        // Simulate a crash between writing the results and the report.
        fs::remove_file(&path).expect("there");
        fs::remove_file(cell.join("report.old.json")).expect("there");
        assert_eq!(study(folder.path()), "ExitCode(unix_exit_status(0))", "{variant}: no report");
        assert_eq!(results(&path), expected);
    }
}

/// `fet study` writes the bytes of the harness that `cargo xtask ablate` calls, and refuses a wrong file with exit code 2.
#[test]
fn gives_the_bytes_of_the_harness() {
    let folders = [tempfile::tempdir(), tempfile::tempdir()].map(|folder| folder.expect("a folder"));
    assert_eq!(study(folders[0].path()), "ExitCode(unix_exit_status(0))");
    let fet = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fet"));
        command.args(words).current_dir(&folders[1]).env_remove("FET_BIN").output().expect("it runs")
    };
    fs::write(folders[1].path().join("tiny.toml"), STUDY).expect("writable");
    let output = fet(&["study", "tiny.toml"]);
    assert!(output.status.success(), "{output:?}");
    for file in ["results.csv", "curves.csv"] {
        let [expected, found] = folders
            .each_ref()
            .map(|folder| fs::read(folder.path().join("runs/tiny").join(file)).expect(file));
        assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected), "{file}");
    }
    for words in
        [&["study", "nothing.toml"][..], &["study", "tiny.toml", "--only", "none"], &["tune", "tiny.toml"]]
    {
        let output = fet(words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}
