//! Error messages of `cargo xtask libtorch`, with stand-ins for cargo and Python.
//!
//! The actual set-up downloads 900 MB and is tested by hand.

use std::path::Path;
use std::process::Command;

#[test]
fn each_failure_has_its_message_and_code() {
    let check = |python: &str, expected_code: i32, parts: &[&str]| {
        let workspace = tempfile::tempdir().expect("a folder");
        let stand_ins = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.current_dir(workspace.path()).arg("libtorch").env_remove("LIBTORCH");
        command.env("CARGO", stand_ins.join("fake-cargo.sh"));
        command.env("FAKE_PYTHON", python);
        let path =
            if python == "none" { workspace.path().to_path_buf() } else { stand_ins.join("fake-python") };
        let output = command.env("PATH", path).output().expect("ran");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected_code), "{python}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{python}: {part:?} is not in\n{stderr}");
        }
        assert!(!workspace.path().join("target/libtorch").exists(), "{python}: nothing half-made is left");
    };
    let another = "set the environment variable LIBTORCH";
    check("none", 2, &["cannot find python3", another]);
    check("no-pip", 2, &["lacks pip", another]);
    check("no-network", 1, &["pip could not fetch", "run the same command to try again", another]);
    check("nothing", 1, &["pip stored no torch==2.9.0"]);
    check("other-wheel", 1, &["is not the pinned wheel", "SHA-256", another]);
}
