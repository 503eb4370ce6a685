//! Linking in several places: each data holder encodes its own table, and a linkage unit, which has neither the
//! keys nor the secret, compares the encodings.

mod clkhash;
mod clusters;
mod compare;
mod encode;
mod encodings;

use std::path::Path;

use zeroize::Zeroizing;

use fet_io::input::input;

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
    Match(compare::LinkMatchArguments),
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

/// Minimum length of a secret in bytes.
const LEAST: usize = 16;

/// Maximum length of a variable name; a longer argument cannot be a name.
const MOST_NAME: usize = 64;

/// Returns a variable's name for a message, unless the name looks unusual, since the user may have passed the
/// secret by mistake.
fn name_for_message(name: &str) -> &str {
    let usual = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if usual { name } else { "that it names" }
}

/// Reads the data holders' secret from an environment variable. clkhash accepts shorter secrets; the command then
/// warns.
fn secret(name: &str, of_clkhash: bool) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    // An argument that is not a name may be the secret itself, so the message must not repeat it.
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || !is_name || name.len() > MOST_NAME {
        return Err(input(format!(
            "--secret-env: must name an environment variable, with letters, digits and _; the argument has {} bytes \
             (do not pass the secret itself)",
            name.len()
        )));
    }
    let value = std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes).unwrap_or_default();
    let value = Zeroizing::new(value);
    if of_clkhash && (1..LEAST).contains(&value.len()) {
        fet_io::note!(
            "warning: the secret has only {} bytes; anyone who guesses it can test guesses of names. Use {LEAST} \
             random bytes.",
            value.len()
        );
    } else if value.len() < LEAST {
        return Err(input(format!(
            "--secret-env: the environment variable {} must hold the data holders' secret, {LEAST} bytes or more; it has {}",
            name_for_message(name),
            value.len()
        )));
    }
    Ok(value)
}
