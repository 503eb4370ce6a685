//! `fet psi`: which keys two tables in two places have in common, by two files that show no key.
//!
//! The protocol is [`fet_linkage::psi::labelled`]; here are its files, the tables' keys, and what is said. Nothing is sent: how files get
//! from place to place, and who wrote them, is the parties' own affair.

mod answer;
mod ask;
mod files;
mod open;
mod payload;
mod table;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The commands of `fet psi`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Ask which of a table's keys another table has too: a request for its owner, and a secret that stays.
    #[command(after_help = ASK)]
    Ask(ask::Arguments),
    /// Answer a request from a table of your own.
    #[command(after_help = ANSWER)]
    Answer(answer::Arguments),
    /// Open an answer by the secret of its request.
    #[command(after_help = OPEN)]
    Open(open::Arguments),
}

/// What an asker gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// How many distinct keys are in common, and not which.
    Cardinality,
    /// Which rows have equal keys.
    Links,
    /// The same, with columns of the owner's at rows in common.
    Payload,
}

impl Form {
    /// As the command line has it.
    fn name(self) -> &'static str {
        match self {
            Self::Cardinality => "cardinality",
            Self::Links => "links",
            Self::Payload => "payload",
        }
    }
}

const ASK: &str = "\
Who learns what, if both use this program as it is:
  the owner     how many rows the asker has, how many key columns, whether each holds numbers, identifiers or names, and what it wants; none of
                its keys, and nothing of what is in common
  the asker     how many rows the owner has, and beside that
    cardinality   how many distinct keys are in common, and not which
    links         which of its rows are equal to which rows of the owner's
    payload       the same, and the cells of the columns that the owner names, of those rows alone; of all rows about how long the longest is
Repeated keys show in neither file, nor do missing ones. The asker's cells decide for each column how it is compared, and the request says so: as
numbers where all are plainly numbers (not 077, 1.10, 1e2 or +7), as they stand where they look like identifiers, else as names (without case,
accents and punctuation). A row with an empty key cell is equal to nothing. --compare verbatim or --compare normal decides instead.

The secret opens the answer: keep the file to yourself. It opens one answer and is then gone; ask again for another.

  fet psi ask a.csv --keys name,town --out request.psi --secret a.secret          # the asker; request.psi goes to the owner of b.csv
  fet psi answer request.psi b.csv --keys name,town --give links --out answer.psi # the owner; answer.psi goes to the asker
  fet psi open answer.psi --secret a.secret --out links.csv                       # the asker";

const ANSWER: &str = "\
The owner decides: --give must name what the request wants, and with payload --payload the columns that go with it. Each answer is under a key
of its own, which is kept nowhere.

The asker learns how many rows this table has; with cardinality how many distinct keys are in common, with links which rows they are (numbers
from 0, so shuffle a table whose order says something), with payload the named cells of these rows, and of all rows about how long the longest is.
This table's owner learns how many rows the asker has.

An asker gets an answer for keys that it guesses, too. With cardinality one key among made-up ones tells whether that one is in common, and who
changes the program can mark a key: --at-least refuses requests of few rows, --at-most those that could list all keys, but no program can see which rows are made up. Answer who you trust
to ask about its own table, and do not answer the same asker without end.";

const OPEN: &str = "\
Links are written as `fet link` does: primary_row (the asker's), secondary_row (the owner's, both from 0), rank, similarity (1). A payload has the
owner's columns after them. A cardinality is printed.

Once the answer is open the secret is taken out of its file. Files have checksums against damage, and no signatures: get them from whom you expect.";

/// Runs a command; returns what to say, and whether links are on standard output, so that it is said beside them.
pub fn run(command: &Command) -> anyhow::Result<(String, bool)> {
    match command {
        Command::Ask(arguments) => Ok((ask::ask(arguments)?, false)),
        Command::Answer(arguments) => Ok((answer::answer(arguments)?, false)),
        Command::Open(arguments) => Ok((open::open(arguments)?, arguments.writes_to_standard())),
    }
}
