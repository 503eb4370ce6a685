//! Linking in several places: each data holder encodes its own table, and a linkage unit, which has neither the
//! keys nor the secret, compares the encodings.

mod clkhash;
mod clusters;
mod compare;
mod encode;
mod encodings;
mod search;
mod secret;

use std::path::Path;

/// Commands of `fet link` for data holders in several places.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum SeparateLinkCommand {
    /// Learn a schema for encoding texts from a table; give it to all data holders, but not to the linkage unit.
    #[command(after_help = SCHEMA)]
    Schema(encode::LinkSchemaArguments),
    /// Encode a table with a schema, into a file without keys or ids for the linkage unit.
    #[command(after_help = ENCODE)]
    Encode(encode::LinkEncodeArguments),
    /// Match encoded tables: pairs from two tables, clusters from more.
    #[command(after_help = MATCH)]
    Match(search::LinkMatchArguments),
}

const SCHEMA: &str = "\
All data holders need the same schema and the same secret. Each data holder keeps the secret, 16 bytes or more, in an environment variable, not in a file.
The schema contains no cells of the table, only the names of its columns and the marks of missing cells. With the schema and the secret, one
can find the frequency of each q-gram and word that occurs in three or more rows, by trying all q-grams.
A new schema draws a new salt: its encodings cannot be linked with those of earlier schemas, under the same secret or another.

  export FET_LINK_SECRET=$(head -c 32 /dev/urandom | base64)     # once; every data holder gets the same secret, the linkage unit never
  fet link schema a.csv --keys name,address --out schema.json     # the data holder that makes the schema; give schema.json to the others
  fet link encode a.csv --schema schema.json --out a.clks         # each data holder; give the .clks files to the linkage unit
  fet link match a.clks b.clks --out pairs.csv                    # linkage unit: row numbers, no keys";

const ENCODE: &str = "\
The schema names the columns; --keys names them if they have other names in this table.
The file reveals to the linkage unit how similar rows are, how frequent bits are and which rows have no key. It names the schema and the
secret by a fingerprint that reveals neither. Rows keep the order of the table, which shows the unit the ranks of a sorted table: shuffle it
first. Keep the table, because results name rows by numbers from 0.

A linkage schema of clkhash (version 3) gives the same bits as clkhash 0.18, so one data holder may use clkhash and another fet. Such encodings
are compared by their Dice similarity. `fet link match` reads clkhash's files ({\"clks\": [...]}), and this command writes them if FILE
ends in .json.";

const MATCH: &str = "\
Two files give pairs: primary_row, secondary_row (counted from 0), rank, similarity. More files give clusters: cluster, file, row. All rows of
a cluster are candidates of each other, and each cluster has at most one row of a file.
The unit learns how similar all rows are, also within a file, and how frequent bits are, from which frequent values can be guessed. It has
no keys to show to a person: --review needs both tables (`fet link A B`).";

impl SeparateLinkCommand {
    /// Returns true if the command's results go to this path.
    pub(super) fn writes_to(&self, place: &Path) -> bool {
        matches!(self, Self::Match(arguments) if arguments.out == place)
    }
}

/// Runs the command, and returns its summary.
pub(super) fn run(command: &SeparateLinkCommand) -> anyhow::Result<String> {
    match command {
        SeparateLinkCommand::Schema(arguments) => encode::learn(arguments),
        SeparateLinkCommand::Encode(arguments) => encode::encode(arguments),
        SeparateLinkCommand::Match(arguments) => compare::compare(arguments),
    }
}
