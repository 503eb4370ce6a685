//! Commands for data holders: learn a schema from a table, and encode a table by a schema.

use std::path::{Path, PathBuf};

use anyhow::Context;
use fet_core::data::{KeyKind, TextTable};
use fet_core::linker::Linker;
use fet_core::registry::Slot;
use fet_data::read_keys;
use fet_linkers::{ClkSettings, LinkageSchema};

use super::clkhash;
use super::encodings::{Encodings, Score};
use super::secret::secret;
use fet_io::input::{input, of_json};
use fet_io::output;

/// Arguments of `fet link schema`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LinkSchemaArguments {
    /// The table from which to learn frequencies: CSV, may end in .gz.
    table: PathBuf,
    /// Key columns, separated by commas.
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B")]
    keys: Vec<String>,
    /// Setting of the linker `clk`, as in `--set bits=1024`. Can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    sets: Vec<String>,
    /// Environment variable with the data holders' secret.
    #[arg(long, value_name = "NAME", default_value = "FET_LINK_SECRET")]
    secret_env: String,
    /// Output file for the schema, which only you may read.
    #[arg(long)]
    out: PathBuf,
}

/// Arguments of `fet link encode`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LinkEncodeArguments {
    /// The table to encode: CSV, may end in .gz.
    table: PathBuf,
    /// The schema from `fet link schema`, or a linkage schema of clkhash (version 3).
    #[arg(long)]
    schema: PathBuf,
    /// Names of the schema's columns in this table, if they differ.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    keys: Vec<String>,
    /// Environment variable with the data holders' secret.
    #[arg(long, value_name = "NAME", default_value = "FET_LINK_SECRET")]
    secret_env: String,
    /// Output file for the encodings, which only you may read. With a clkhash schema, a name in .json
    /// selects clkhash's format.
    #[arg(long)]
    out: PathBuf,
}

/// Learns and writes a schema, and returns the summary.
pub(super) fn learn(arguments: &LinkSchemaArguments) -> anyhow::Result<String> {
    let LinkSchemaArguments { table, keys, out, .. } = arguments;
    output::check_own("--out", out, [table])?;
    let settings = settings(&arguments.sets)?;
    let secret = secret(&arguments.secret_env, false)?;
    let records = texts(table, keys)?;
    let mut salt = [0; 16];
    getrandom::fill(&mut salt)
        .map_err(|error| input(format!("the system provides no random numbers: {error}")))?;
    let schema = LinkageSchema::learn(&settings, keys, salt, &secret, &records)
        .map_err(|error| input(error.to_string().replace("`linker.", "`--set ")))?;
    fet_io::write_private(out, &serde_json::to_vec_pretty(&schema)?)
        .with_context(|| format!("cannot write {}", out.display()))?;
    Ok(format!(
        "learned from {} rows: {} q-grams and words that occur in three or more rows\nschema written to {}: give it to \
         the data holders who have the secret, but not to the linkage unit\n",
        records.rows(),
        schema.listed(),
        out.display()
    ))
}

/// Encodes a table, writes the encodings, and returns the summary.
pub(super) fn encode(arguments: &LinkEncodeArguments) -> anyhow::Result<String> {
    let LinkEncodeArguments { table, schema: path, keys, out, .. } = arguments;
    output::check_own("--out", out, [table, path])?;
    let text = fet_io::read_to_string(path)
        .map_err(|error| input(format!("--schema {}: {error}", path.display())))?;
    let theirs = clkhash::is_theirs(&text);
    let secret = secret(&arguments.secret_env, theirs)?;
    let mut told = String::new();
    let encodings = if theirs {
        let schema = clkhash::parse(path, &text)?;
        let names: Vec<String> = clkhash::encoded(&schema).map(String::from).collect();
        let columns = columns(&path.display().to_string(), &names, keys)?;
        let filters = clkhash::encode(&schema, table, &columns, &secret)?;
        Encodings { filters, fingerprint: clkhash::fingerprint(&text, &secret), score: Score::Dice }
    } else {
        let schema = parse(path, &text)?;
        let records = texts(table, &columns(&path.display().to_string(), &schema.names(), keys)?)?;
        let filters = schema.encode(&secret, &records).map_err(input)?;
        let full = (0..filters.rows()).filter(|&row| 2 * filters.ones(row) as usize > filters.bits()).count();
        if !schema.is_hardened() && 20 * full > filters.rows() {
            told = format!(
                "{full} rows fill more than half of their bits. Long texts need more bits (fet link schema --set \
                 bits=N).\n"
            );
        }
        Encodings { filters, fingerprint: Some(schema.fingerprint(&secret)), score: Score::Correlation }
    };
    encodings.write(out).with_context(|| format!("cannot write {}", out.display()))?;
    let filters = &encodings.filters;
    let empty = (0..filters.rows()).filter(|&row| filters.ones(row) == 0).count();
    if empty > 0 {
        told += &format!("{empty} rows have empty keys and get no links\n");
    }
    let encoded = format!("{} rows encoded, {} bits each\n", filters.rows(), filters.bits());
    Ok(encoded + &told + &format!("encodings written to {}\n", out.display()))
}

/// Returns the columns of a table for the fields of a schema: `keys`, or else the names of the fields.
fn columns(schema: &str, names: &[String], keys: &[String]) -> anyhow::Result<Vec<String>> {
    if keys.is_empty() {
        return Ok(names.to_vec());
    }
    if keys.len() == names.len() {
        return Ok(keys.to_vec());
    }
    Err(input(format!(
        "--keys: must name as many columns as {schema} ({}: {}); it names {}",
        names.len(),
        names.join(", "),
        keys.len()
    )))
}

/// Returns the settings of `clk` with these changes.
fn settings(sets: &[String]) -> anyhow::Result<ClkSettings> {
    let mut table = toml::Table::new();
    for assignment in sets {
        fet_core::changes::set(&mut table, assignment).map_err(|error| input(format!("--set {error}")))?;
    }
    // Settings that do not affect the encoding, or must not be in a file.
    let others = [
        "kind",
        "neighbours",
        "pad",
        "secret_env",
        "blocking",
        "block_bits",
        "block_recall",
        "block_similarity",
    ];
    for other in others {
        if table.contains_key(other) {
            return Err(input(format!("--set {other}: is not a setting of a schema")));
        }
    }
    let mut named = table.clone();
    named.insert("kind".into(), "clk".into());
    Slot::<dyn Linker>::from_table(named).map_err(|error| input(format!("--set {error}")))?;
    table.try_into().map_err(|error| input(format!("--set: {error}")))
}

/// Parses the schema in the text of a file.
fn parse(path: &Path, text: &str) -> anyhow::Result<LinkageSchema> {
    let wrong = |problem: String| input(format!("--schema {}: {problem}", path.display()));
    let schema: LinkageSchema = serde_json::from_str(text)
        .map_err(|error| wrong(format!("must be a file from `fet link schema`; {}", of_json(&error))))?;
    schema.check().map_err(|error| wrong(error.to_string()))?;
    Ok(schema)
}

/// Reads the key columns of a table as text.
fn texts(path: &Path, columns: &[String]) -> anyhow::Result<TextTable> {
    let (keys, _) = read_keys(path, columns, KeyKind::Text).map_err(input)?;
    keys.text().cloned().ok_or_else(|| input(format!("{}: must have text keys", path.display())))
}
