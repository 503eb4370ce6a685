//! Passes the commit to the program, and the path of LibTorch if the program links it.

use std::process::Command;

fn main() {
    println!("cargo::rustc-env=FET_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_string()));
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    if std::env::var_os("CARGO_FEATURE_LIBTORCH").is_some()
        && let Ok(folder) = std::env::var("LIBTORCH")
    {
        // With this path the program starts without LD_LIBRARY_PATH.
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}/lib");
    }
}

fn commit() -> Option<String> {
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}
