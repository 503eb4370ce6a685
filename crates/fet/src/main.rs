//! The program `fet`. Its library has everything, so that a program with plug-ins of its own can call [`fet::main`] as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    fet::main()
}
