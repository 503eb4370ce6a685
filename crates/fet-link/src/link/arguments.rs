//! Arguments of `fet link`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `fet link`.
// The struct is flat, because `LinkCommand` uses it as an `Option`: clap would take it for absent if it contained flattened structs.
#[derive(Debug, Clone, clap::Args)]
pub struct LinkArguments {
    /// The table whose records get neighbours: CSV, may end in .gz.
    pub primary: PathBuf,
    /// The table that the linker searches for neighbours.
    pub secondary: PathBuf,
    /// Key columns, separated by commas.
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B")]
    pub keys: Vec<String>,
    /// Names of these columns in the secondary table, if they differ.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub secondary_keys: Vec<String>,
    /// Read all keys as text, even if all of them are numbers.
    #[arg(long, conflicts_with = "numbers")]
    pub text: bool,
    /// Read all keys as numbers, even if some begin with a zero; 0123 and 123 are then the same key.
    #[arg(long)]
    pub numbers: bool,
    /// The linker; `fet list linker` lists all linkers [default: nearest for numbers, clk for text].
    #[arg(long)]
    pub linker: Option<String>,
    /// Setting of the linker, as in `--set neighbours=1` (or k=1). Can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// Output file (CSV), compressed if its name ends in .gz. `-` writes the links to standard output and the
    /// summary to standard error. Columns: primary and secondary row (counted from 0), rank, similarity.
    #[arg(long)]
    pub out: PathBuf,
    /// Leave out pairs below this similarity: a number, `auto` or `none`. `auto` estimates the threshold with
    /// the best expected F1 of each row's best link: from the probabilities of `scoring=match-weights`, or
    /// else from each pair's lead over its rivals, for `clk`, `edit` and `tfidf` [default: auto for these if K
    /// is 1 or pairs are assigned, else none].
    #[arg(long, allow_hyphen_values = true, value_name = "NUMBER|auto|none")]
    pub threshold: Option<Threshold>,
    /// Assignment of pairs: `one-to-one` puts each row of either table into at most one pair, chosen among
    /// ten candidates per row.
    #[arg(long, value_enum, value_name = "HOW")]
    pub assign: Option<Assign>,
    /// True pairs, a CSV file with a header: the primary's row or id, then the secondary's.
    #[arg(long)]
    pub truth: Option<PathBuf>,
    /// Column with the ids that --truth uses: one name for both tables, or one name for each, separated by a
    /// comma.
    #[arg(long, value_delimiter = ',', value_name = "A[,B]")]
    pub id: Vec<String>,
    /// Write review.html and review.csv into this folder for a clerical review: the pairs nearest the
    /// threshold side by side, with room for a decision. Show them only to people who may see both tables.
    /// Needs a threshold.
    #[arg(long, value_name = "FOLDER")]
    pub review: Option<PathBuf>,
    /// Number of pairs in a review.
    #[arg(long, value_name = "N", default_value = "100", requires = "review")]
    pub review_pairs: NonZeroUsize,
    /// Decisions of a review, a CSV file. Can be repeated. Columns: primary_row and secondary_row, or
    /// primary_id and secondary_id (with --id), and decision. `yes` always links the pair, `no` never does,
    /// `unsure` only keeps the pair out of the next review.
    #[arg(long, value_name = "FILE")]
    pub decisions: Vec<PathBuf>,
    /// Seed of the linker.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder for cached links [default: FET_LINK_CACHE, if set].
    #[arg(long)]
    pub cache: Option<PathBuf>,
}

/// Similarity threshold below which pairs are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Estimated threshold with the best expected F1.
    Auto,
    /// No threshold.
    None,
    /// Given threshold.
    At(f32),
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            number => match number.parse::<f32>() {
                Ok(number) if number.is_finite() => Ok(Self::At(number)),
                _ => Err("must be a finite number, \"auto\" or \"none\"".to_string()),
            },
        }
    }
}

/// Assignment of records to pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Assign {
    /// Put each row of either table into at most one pair, the most similar pairs first.
    OneToOne,
}
