//! `fet psi`: finds the keys that two tables in two places share, by two files that reveal no key.
//!
//! [`fet_linkage::psi::labelled`] is the protocol; this module handles its files, the tables' keys and the
//! messages to the user. The command sends nothing. The parties must exchange the files themselves and make
//! sure of their origin.

mod answer;
mod ask;
mod files;
mod open;
mod payload;
mod table;

/// Commands of `fet psi`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum PsiCommand {
    /// Create a request for the other table's data holder, and a secret that you keep.
    #[command(after_help = ASK)]
    Ask(ask::PsiAskArguments),
    /// Answer a request with your own table.
    #[command(after_help = ANSWER)]
    Answer(answer::PsiAnswerArguments),
    /// Open an answer with the secret of its request.
    #[command(after_help = OPEN)]
    Open(open::PsiOpenArguments),
}

const ASK: &str = "\
Information that each side learns, if both use this program unchanged:
  data holder   the number of the querier's rows and key columns; for each column whether it holds numbers, identifiers or names; and the
                wanted result. The data holder learns no key, and nothing about the common keys.
  querier       the number of the data holder's rows, and in addition:
    cardinality   the number of distinct common keys, but not the keys
    links         the pairs of rows with equal keys
    payload       the pairs of rows, and the cells of these rows in the columns that the data holder names; also the approximate length of
                  the longest payload of all rows
Neither file shows repeated or missing keys. The querier's cells decide the comparison of each column, and the request states it: as
numbers if all cells are plain numbers (not 077, 1.10, 1e2 or +7), verbatim if they look like identifiers, else as names (without case, accents
and punctuation). A row with an empty key cell matches no row. --compare verbatim or --compare normal overrides this choice.

The secret opens the answer, so keep the file to yourself. It opens one answer and is then erased; create a new request for another.

  fet psi ask a.csv --keys name,town --out request.psi --secret a.secret          # querier; send request.psi to the data holder of b.csv
  fet psi answer request.psi b.csv --keys name,town --give links --out answer.psi # data holder; send answer.psi to the querier
  fet psi open answer.psi --secret a.secret --out links.csv                       # querier";

const ANSWER: &str = "\
You decide: --give must match the result that the request wants, and for payload --payload must name the columns to reveal. Each answer
uses a new key, which the program does not store.

The querier learns the number of rows of this table. With cardinality it learns the number of distinct common keys. With links it learns the
numbers of the common rows (from 0, so shuffle a table whose order carries information). With payload it also learns the named cells of these
rows, and the approximate length of the longest payload of all rows. You learn the number of the querier's rows.

A querier also gets an answer for guessed keys. With cardinality, one real key among invented keys reveals whether that key is common, and
a modified program can mark a key. --at-least refuses requests with few rows, --at-most those that could list all keys, but no program can
detect invented rows. Answer only queriers that you trust to ask about their own table, and limit the number of answers to one querier.";

const OPEN: &str = "\
Links have the format of `fet link`: primary_row (the querier's), secondary_row (the data holder's, both from 0), rank, similarity (1).
A payload adds the data holder's columns. A cardinality is printed.

After the answer is open, the program erases the secret from its file. The files have checksums against damage, but no signatures: make
sure that they come from the right party.";

/// Runs a command. Returns its summary, and true if the links go to standard output, so that the summary must
/// go to standard error.
pub fn run(command: &PsiCommand) -> anyhow::Result<(String, bool)> {
    match command {
        PsiCommand::Ask(arguments) => Ok((ask::ask(arguments)?, false)),
        PsiCommand::Answer(arguments) => Ok((answer::answer(arguments)?, false)),
        PsiCommand::Open(arguments) => Ok((open::open(arguments)?, arguments.writes_to_standard())),
    }
}
