//! The program `fet-link`: the commands `fet link` and `fet psi` without the rest of `fet`.

use std::process::ExitCode;

use clap::Parser;
use fet_data as _;
use fet_link::{link, psi};

/// Link tables by fuzzy keys, and intersect private sets.
#[derive(Debug, Parser)]
#[command(version)]
enum Command {
    /// Link two tables by their keys.
    Link(Box<link::Command>),
    /// Intersect two tables of two organisations, without showing the other rows.
    #[command(subcommand)]
    Psi(psi::Command),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Link(command) => command.run(),
        Command::Psi(command) => psi::run(&command),
    };
    done.and_then(|summary| fet_link::report(&summary)).unwrap_or_else(|error| {
        fet_io::note!("fet-link: {}", fet_io::shorten(&format!("{error:#}")));
        ExitCode::from(fet_io::exit::code(&error))
    })
}
