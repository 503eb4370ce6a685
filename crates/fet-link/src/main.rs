//! The program `fet-link`: the commands `fet link` and `fet psi` without the rest of `fet`.

use std::process::ExitCode;

use clap::Parser;
use fet_data as _;
use fet_link::{link, psi};

/// Link tables by fuzzy keys, and intersect private sets.
#[derive(Debug, Parser)]
#[command(version)]
enum FetLinkCommand {
    /// Link two tables by their keys.
    Link(Box<link::LinkCommand>),
    /// Intersect two tables of two organisations, without showing the other rows.
    #[command(subcommand)]
    Psi(psi::PsiCommand),
}

fn main() -> ExitCode {
    let done = match FetLinkCommand::parse() {
        FetLinkCommand::Link(command) => command.run(),
        FetLinkCommand::Psi(command) => psi::run(&command),
    };
    done.and_then(|summary| fet_link::report(&summary)).unwrap_or_else(|error| {
        fet_io::note!("fet-link: {}", fet_io::shorten(&format!("{error:#}")));
        ExitCode::from(fet_io::exit::code(&error))
    })
}
