//! The program `fet`. All code is in its library, so a program with additional plug-ins can call [`fet::main`] too.

use std::process::ExitCode;

fn main() -> ExitCode {
    fet::main()
}
