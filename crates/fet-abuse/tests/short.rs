//! Short form of the abuse suite: no area may have a fault.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use fet_testing::left_out;

#[test]
fn no_case_of_the_short_form_fails() {
    let program = Path::new(env!("CARGO_BIN_EXE_fet-abuse"));
    let fet = std::env::var_os("FET_BIN").map_or_else(|| program.with_file_name("fet"), PathBuf::from);
    if !fet.is_file() {
        left_out("fet", "there is no `fet` in the build folder; `cargo xtask test` builds one");
        return;
    }
    let ended =
        Command::new(program).arg(fet).args(["--short", "--patience", "10"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let cases = said.lines().last().and_then(|line| line.split_whitespace().next()?.parse().ok());
    assert!(cases.is_some_and(|cases: usize| cases >= 150), "{said}");
}
