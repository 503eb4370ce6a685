//! Compares figures of the authors' program on every device: outputs, losses, gradients, and a training run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fet_backends::{Backend, BackendError};
use fet_e2e::golden::{GoldenError, check, check_run, check_with};
use fet_testing::left_out;
use serde_json::Value;

/// Returns every device of this build that this machine can open.
fn devices() -> Vec<Backend> {
    let mut found = Vec::new();
    for name in fet_backends::NAMES {
        match fet_backends::open(name) {
            Ok(backend) => found.push(backend),
            Err(BackendError::NotCompiled { feature, .. }) => {
                left_out(feature, &format!("{name} is not compiled in"))
            }
            Err(error @ (BackendError::NoGpu { .. } | BackendError::NoCuda { .. })) => {
                left_out(if name == "libtorch-cuda" { "gpu" } else { name }, &error.to_string());
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    found
}

fn flex() -> Backend {
    fet_backends::open("flex").expect("flex is always compiled in")
}

fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "safetensors")).collect();
    files.sort();
    files
}

/// Checks every file on every device, with and without fused kernels, and returns the number of passed
/// checks. The function prints the name of an unknown method.
fn walk(folder: &Path) -> usize {
    let mut met = 0;
    for file in files(folder) {
        for (backend, fused) in devices().iter().flat_map(|backend| [(backend, true), (backend, false)]) {
            match check_with(&file, backend, fused) {
                Ok(verdict) => {
                    assert!(verdict.is_met(), "{verdict:?}");
                    met += 1;
                }
                Err(GoldenError::NotCovered { path, method }) => {
                    eprintln!("not covered: {} (method {method})", path.display());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    met
}

#[test]
fn meets_the_authors_figures_on_every_device() {
    let folder = own();
    assert_eq!(walk(&folder), 2 * 7 * devices().len());
}

/// Checks the same files through parties, messages and the trainer, as in a run, and not only through the
/// slots.
#[test]
fn run_with_parties_and_trainer_meets_the_authors_figures() {
    let folder = own();
    let mut met = 0;
    for file in files(&folder) {
        for (backend, fused) in devices().iter().flat_map(|backend| [(backend, true), (backend, false)]) {
            let verdict = check_run(&file, backend, fused).unwrap_or_else(|error| panic!("{error}"));
            assert!(verdict.iter().all(|verdict| verdict.is_met()), "{verdict:?}");
            met += usize::from(verdict.is_some());
        }
    }
    // All files except for FedSim's two.
    assert_eq!(met, 2 * 5 * devices().len());
}

#[test]
fn meets_the_figures_of_the_folder_in_the_environment() {
    match std::env::var_os("FET_GOLDEN") {
        Some(folder) => assert!(walk(Path::new(&folder)) > 0, "FET_GOLDEN holds no file that is covered"),
        None => left_out("golden", "FET_GOLDEN is not set"),
    }
}

#[test]
fn detects_a_changed_figure() {
    let folder = own();
    let bytes = std::fs::read(folder.join("no_position.safetensors")).expect("the file is there");
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let path = temporary.path().join("changed.safetensors");
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let (mut noticed, mut tried) = (0, 0);
    // Flip the sign of single values at regular positions throughout the file: parameters, inputs and
    // figures.
    for place in (header + 3..bytes.len()).step_by(4 * 1_999) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x80;
        changed[place] |= 0x40;
        std::fs::write(&path, &changed).expect("the folder is writable");
        tried += 1;
        noticed += usize::from(check(&path, &flex()).map_or(true, |verdict| !verdict.is_met()));
    }
    // The file also contains the primary's unused encoder, whose values have no effect.
    assert!(noticed * 3 >= tried * 2 && tried > 5, "{noticed} of {tried} changes were noticed");
}

#[test]
fn explains_unusable_files() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let path = temporary.path().join("x.safetensors");
    let explain = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("the folder is writable");
        check(&path, &flex()).expect_err("refused").to_string()
    };
    assert!(explain(b"nonsense").contains("not a safetensors file"));
    let missing = check(Path::new("no/such/file"), &flex()).expect_err("refused");
    assert!(missing.to_string().contains("no/such/file"));
}

fn command(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fet-e2e"));
    command.arg("golden").args(arguments).output().expect("it starts")
}

#[test]
fn command_prints_one_json_line_and_sets_the_exit_code() {
    let verdict = |name: &str, more: &[&str]| -> Value {
        let file = own().join(name).display().to_string();
        let output = command(&[&[&*file], more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let line = verdict("no_mask.safetensors", &["--device", "flex"]);
    for field in ["file", "device", "output_max_abs", "loss_abs", "grad_max_rel"] {
        assert!(!line[field].is_null(), "{field} in {line}");
    }
    let line = verdict("lamb_20_steps.safetensors", &[]);
    assert!(line["loss_max_abs"].is_f64() && line["param_max_rel"].is_f64(), "{line}");
}

#[test]
fn command_refuses_other_files() {
    let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let (never, device) = ("a FIFO, a device or a socket", "nosuch");
    let good = own().join("no_mask.safetensors").display().to_string();
    for (arguments, names) in [
        (&["nothing.safetensors"][..], "nothing.safetensors"),
        (&[settings], settings),
        (&["/dev/zero"], never),
        (&[&good, "--device", device], device),
    ] {
        let output = command(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said.starts_with("fet: ") && said.contains(names) && said.lines().count() == 1, "{said}");
    }
}
