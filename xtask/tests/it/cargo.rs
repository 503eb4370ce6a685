//! Calls of cargo by the commands: arguments, environment and exit codes, with and without LibTorch. A
//! stand-in replaces cargo, so that the tests compile nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

#[test]
fn tests_and_benches_pass_arguments_on() {
    let calls = |arguments: &[&str], libtorch: bool, expected: &str| {
        let workspace = Workspace::new(libtorch);
        let (code, stderr) = workspace.xtask(arguments, &[]);
        assert_eq!(code, 0, "{stderr}");
        let calls = workspace.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(calls[0].starts_with(&format!("{expected} | ")), "{calls:?}");
        let named =
            if libtorch { "devices: flex, ndarray, libtorch" } else { "`cargo xtask libtorch` fetches it" };
        assert!(stderr.contains(named), "{stderr}");
    };
    let test = "test --release --workspace --no-fail-fast";
    calls(&["test"], false, test);
    calls(&["test"], true, &format!("{test} --features fet/libtorch"));
    calls(&["test", "--", "linker", "--", "--nocapture"], false, &format!("{test} linker -- --nocapture"));
    let devices = "contract:: equivalence:: evaluated:: every_device golden:: loads_cuda primary:: repeat:: \
                   transformations::";
    let only = format!("{test} --features fet/libtorch --test suite --test it");
    calls(&["test", "--devices"], true, &format!("{only} -- {devices}"));
    calls(
        &["test", "--devices", "--", "--features", "x"],
        true,
        &format!("{only} --features x -- {devices}"),
    );
    let own = ["test", "--devices", "--", "--", "--nocapture"];
    calls(&own, true, &format!("{only} -- --nocapture {devices}"));
    calls(
        &["gpu", "--device", "wgpu", "--no-benchmarks"],
        true,
        &format!("{only} --features fet/wgpu -- {devices}"),
    );
    calls(&["bench"], false, "bench --package fet-e2e");
    let bench = "bench --package fet-e2e --features fet/libtorch --bench linker";
    calls(&["bench", "--", "--bench", "linker"], true, bench);
}

#[test]
fn libtorch_is_left_out_on_request() {
    let workspace = Workspace::new(true);
    let arguments = ["test", "--without-libtorch", "--", "--features", "x"];
    let (code, stderr) = workspace.xtask(&arguments, &[]);
    assert_eq!(code, 0, "{stderr}");
    let calls = workspace.calls();
    assert!(calls[0].starts_with("test --release --workspace --no-fail-fast --features x | "), "{calls:?}");
    assert!(!stderr.contains("libtorch"), "{stderr}");
}

#[test]
fn the_site_alone_has_mdbook_compiled() {
    let workspace = Workspace::new(false);
    let (code, stderr) = workspace.xtask(&["site"], &[]);
    assert_eq!(code, 0, "{stderr}");
    let site = workspace.path("target/site");
    let expected = format!("run --release -p fet-site --features book -- {} | ", site.display());
    let calls = workspace.calls();
    assert!(calls.len() == 1 && calls[0].starts_with(&expected), "{calls:?}");
}

#[test]
fn the_program_writes_the_reference_of_settings() {
    let workspace = Workspace::new(false);
    let (code, stderr) = workspace.xtask(&["reference"], &[]);
    assert_eq!(code, 0, "{stderr}");
    let expected = "run --release -p fet -- manual --markdown docs/reference | ";
    let calls = workspace.calls();
    assert!(calls.len() == 1 && calls[0].starts_with(expected), "{calls:?}");
}

#[test]
fn cargo_finds_libtorch_where_it_is() {
    let workspace = Workspace::new(true);
    let own = workspace.path("libtorch").display().to_string();
    assert_eq!(workspace.xtask(&["test"], &[("LD_LIBRARY_PATH", "/elsewhere")]).0, 0);
    let call = &workspace.calls()[0];
    assert!(call.contains(&format!("| {own} | {own}/lib:/elsewhere |")), "{call}");

    let without = Workspace::new(false);
    assert_eq!(without.xtask(&["test"], &[("LD_LIBRARY_PATH", "/elsewhere")]).0, 0);
    assert!(without.calls()[0].contains("| none | /elsewhere |"), "{:?}", without.calls());
}

#[test]
fn a_libtorch_that_is_no_folder_of_libtorch_is_refused() {
    for command in ["test", "check", "bench", "libtorch"] {
        let workspace = Workspace::new(false);
        let (code, stderr) = workspace.xtask(&[command], &[("LIBTORCH", "/nowhere")]);
        assert_eq!(code, 2, "{command}: {stderr}");
        assert!(stderr.contains("LIBTORCH") && stderr.contains("/nowhere"), "{command}: {stderr}");
        assert!(workspace.calls().is_empty());
    }
}

#[test]
fn a_given_libtorch_is_used_as_it_is() {
    let workspace = Workspace::new(true);
    let given = workspace.path("libtorch").display().to_string();
    let elsewhere = Workspace::new(false);
    assert_eq!(elsewhere.xtask(&["libtorch"], &[("LIBTORCH", &given)]).0, 0);
    assert!(!elsewhere.path("target").exists(), "nothing is fetched");
    assert_eq!(elsewhere.xtask(&["libtorch", "--print-env"], &[]).0, 2);
    assert_eq!(elsewhere.xtask(&["libtorch", "--print-env"], &[("LIBTORCH", &given)]).0, 0);
}

/// Otherwise build scripts that read these variables would run again, and Burn would be compiled again.
#[test]
fn cargo_does_not_see_the_package_of_xtask() {
    let workspace = Workspace::new(false);
    let package = [("CARGO_PKG_NAME", "some-package"), ("CARGO_MANIFEST_DIR", "/some/folder")];
    assert_eq!(workspace.xtask(&["test"], &package).0, 0);
    assert!(workspace.calls()[0].contains(" |  | none |"), "{:?}", workspace.calls());
}

#[test]
fn check_stops_at_the_first_failure() {
    let check = |arguments: &[&str], fail: &str, expected_code: i32, subcommands: &[&str]| {
        let workspace = Workspace::new(false);
        let (code, stderr) = workspace.xtask(arguments, &[("FAKE_CARGO_FAIL", fail)]);
        let calls = workspace.calls();
        let first: Vec<&str> = calls.iter().filter_map(|call| call.split(' ').next()).collect();
        assert_eq!((code, first.as_slice()), (expected_code, subcommands), "{stderr}");
        assert_eq!(stderr.contains("FAILED after"), expected_code != 0, "{stderr}");
        let doc = calls.iter().find(|call| call.starts_with("doc"));
        assert!(doc.is_none_or(|doc| doc.ends_with("| -D warnings")), "{doc:?}");
    };
    check(&["check"], "", 0, &["fmt", "clippy", "check", "check", "doc", "test"]);
    check(&["check", "--fast"], "", 0, &["fmt", "clippy", "check", "check", "doc"]);
    check(&["check"], "clippy", 101, &["fmt", "clippy"]);
    check(&["check"], "test", 101, &["fmt", "clippy", "check", "check", "doc", "test"]);
}

#[test]
fn ablate_builds_fet_once_with_libtorch_where_it_is() {
    // The stand-in is the built `fet` that runs the cells; its answer shows that the study called it.
    let fake_fet = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-fet.sh").display().to_string();
    let check = |libtorch: bool, expected: &str| {
        let workspace = Workspace::new(libtorch);
        fs::write(workspace.path("x.toml"), "name = \"x\"\n").expect("written");
        let environment = [("FAKE_CARGO_FET", fake_fet.as_str())];
        let (code, stderr) = workspace.xtask(&["ablate", "x.toml"], &environment);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("x, seed 0: the stand-in was asked"), "{stderr}");
        let calls = workspace.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(calls[0].starts_with(expected), "{calls:?}");
    };
    let build = "build --release -p fet --bin fet";
    check(false, &format!("{build} --message-format"));
    check(true, &format!("{build} --features libtorch --message-format"));

    let workspace = Workspace::new(false);
    fs::write(workspace.path("x.toml"), "name = \"x\"\n").expect("written");
    let (code, stderr) = workspace.xtask(&["ablate", "x.toml"], &[("FAKE_CARGO_FAIL", "build")]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("`fet` could not be built"), "{stderr}");
}

/// Folder that the stand-in reports as the workspace.
struct Workspace {
    folder: TempDir,
    libtorch: bool,
}

impl Workspace {
    fn new(libtorch: bool) -> Self {
        let workspace = Self { folder: tempfile::tempdir().expect("a folder"), libtorch };
        if libtorch {
            for part in ["lib", "include"] {
                fs::create_dir_all(workspace.path("libtorch").join(part)).expect("a folder");
            }
        }
        workspace
    }

    /// Runs xtask and returns its exit code and standard error.
    fn xtask(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.current_dir(self.folder.path()).args(arguments);
        for name in ["FET_BIN", "LIBTORCH", "LD_LIBRARY_PATH", "RUSTDOCFLAGS"] {
            command.env_remove(name);
        }
        if self.libtorch {
            command.env("LIBTORCH", self.path("libtorch"));
        }
        command.env("CARGO", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-cargo.sh"));
        command.env("FAKE_CARGO_CALLS", self.path("calls")).envs(environment.iter().copied());
        let output = command.output().expect("ran");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("a folder").join(path)
    }
}
