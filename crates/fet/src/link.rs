//! `fet link`: links two tables by their keys, writes the neighbours, and reports quality and speed.
//!
//! The user has both tables, so nothing is protected here; `fet list linker` shows what a linker protects between
//! parties. Everything is checked before anything is written, and the output is written atomically.

mod apart;
mod candidates;
mod choice;
mod decisions;
mod named;
pub(crate) mod pairs;
pub(crate) mod progress;
mod review;
mod summary;
mod tables;
mod truth;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use fet_core::data::Keys;
use fet_core::linker::{About, Linker, Links, link_between};
use fet_core::memory;
use fet_core::registry::Slot;
use fet_linkers::{CACHE_VARIABLE, Cached, comparisons, missing};

use self::choice::{Assign, Choice, Threshold};
use self::decisions::{Cells, Decisions};
use self::progress::Progress;
use crate::input::input;
use crate::memory::peak_memory;
use crate::output;

/// `fet link`: of two tables, or one of its commands.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Command {
    #[command(subcommand)]
    apart: Option<apart::Command>,
    #[command(flatten)]
    here: Option<Arguments>,
}

impl Command {
    /// Links, and returns what to say, and whether links are on standard output, so that it is said beside them.
    pub fn run(&self) -> anyhow::Result<(String, bool)> {
        if let Some(command) = &self.apart {
            return Ok((apart::run(command)?, command.writes_to(Path::new(output::STANDARD))));
        }
        let arguments = self.here.as_ref().ok_or_else(|| input("fet link: name two tables"))?;
        Ok((link(arguments)?, arguments.out == Path::new(output::STANDARD)))
    }
}

/// The arguments of `fet link`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The table whose records get neighbours: CSV, may end in .gz.
    pub primary: PathBuf,
    /// The table that is searched for neighbours.
    pub secondary: PathBuf,
    /// The key columns, separated by commas.
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B")]
    pub keys: Vec<String>,
    /// The names of these columns in the secondary table, if they differ.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub secondary_keys: Vec<String>,
    /// Reads keys as texts, also where all are numbers. `exact` and `psi` then compare no column as numbers: 77 and 77.0 are two keys.
    #[arg(long, conflicts_with = "numbers")]
    pub text: bool,
    /// Reads keys as numbers, also where some begin with a zero: 0123 and 123 are then one key.
    #[arg(long)]
    pub numbers: bool,
    /// The linker, see `fet list linker` [default: nearest for numbers, clk for text].
    #[arg(long)]
    pub linker: Option<String>,
    /// A setting of the linker, as in `--set neighbours=1` (or k=1); can be given many times.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,
    /// The output, a CSV file, compressed if its name ends in .gz; `-` is standard output, and what else is told goes to standard
    /// error. Its columns: primary and secondary row (counted from 0), rank, similarity.
    #[arg(long)]
    pub out: PathBuf,
    /// Omits less similar pairs: a number; `auto` for the threshold that is expected to give the best F1 of each row's best link, by how
    /// similar the primary's own rows are to each other (they are linked too, which takes its time), or by the probabilities that
    /// `scoring=match-weights` gives; or `none` [default: auto for texts where K is 1 or pairs are assigned, else none].
    #[arg(long, allow_hyphen_values = true, value_name = "NUMBER|auto|none")]
    pub threshold: Option<Threshold>,
    /// Which pairs are written: `one-to-one` for each row of either table in one pair at most, chosen among ten candidates a row.
    #[arg(long, value_enum, value_name = "HOW")]
    pub assign: Option<Assign>,
    /// The true pairs, a CSV file with a header: the primary's row or id, then the secondary's.
    #[arg(long)]
    pub truth: Option<PathBuf>,
    /// The column with the ids used in the truth: one name for both tables, or one for each, separated by a comma.
    #[arg(long, value_delimiter = ',', value_name = "A[,B]")]
    pub id: Vec<String>,
    /// Writes review.html and review.csv into this folder, for who may see both tables: the pairs nearest the threshold side by side, with
    /// room for a decision. Needs a threshold.
    #[arg(long, value_name = "FOLDER")]
    pub review: Option<PathBuf>,
    /// How many pairs a review asks about.
    #[arg(long, value_name = "N", default_value = "100", requires = "review")]
    pub review_pairs: NonZeroUsize,
    /// What was decided in a review, a CSV file; can be given many times. Its columns: primary_row and secondary_row, or primary_id and
    /// secondary_id (with --id), and decision: yes links the pair whatever its similarity, no never does, unsure only does not ask again.
    #[arg(long, value_name = "FILE")]
    pub decisions: Vec<PathBuf>,
    /// The seed of the linker.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// A folder for cached links; default: that of FET_LINK_CACHE, if set.
    #[arg(long)]
    pub cache: Option<PathBuf>,
}

/// Links, writes, and returns the summary as text.
pub fn link(arguments: &Arguments) -> anyhow::Result<String> {
    let inputs = [&arguments.primary, &arguments.secondary];
    let inputs = inputs.into_iter().chain(&arguments.truth).chain(&arguments.decisions);
    check_output(&arguments.out, inputs.clone())?;
    let (slot, primary, secondary) = tables::prepare(arguments)?;
    let ids = tables::ids(arguments)?;
    let rows = [primary.rows(), secondary.rows()];
    let truth = arguments
        .truth
        .as_deref()
        .map(|path| truth::read(path, &ids, primary.rows(), secondary.rows()))
        .transpose()?;
    let cells = Cells::read(arguments, [&primary, &secondary])?;
    let decisions = Decisions::read(&arguments.decisions, ids.as_ref(), rows, &cells)?;
    if arguments.assign.is_some() {
        decisions.check_one_to_one()?;
    }
    let about = slot.build(&()).map_err(input)?.about();
    let wanted = about.neighbours;
    let threshold = arguments.threshold.unwrap_or_else(|| usual_threshold(arguments, &slot, wanted));
    review::check(arguments, threshold, about.similarities, inputs)?;
    let searched = match arguments.assign {
        Some(Assign::OneToOne) => wanted.max(choice::CANDIDATES.min(secondary.rows())),
        None => wanted,
    };
    let least = if threshold == Threshold::Auto { SECONDS } else { searched };
    let reached = searched.max((searched + decisions.most_rejected()).max(least).min(secondary.rows()));
    let slot = if reached == wanted { slot } else { choice::with_neighbours(&slot, reached)? };
    let linker = build(arguments, &slot)?;
    let (links, seconds) = search(linker.as_ref(), &primary, &secondary, arguments.seed)?;
    let About { floor, probabilities, .. } = linker.about();
    let (assign, records) = (arguments.assign, secondary.rows());
    let choice = Choice { floor, probabilities, threshold, assign, wanted, searched, records };
    let found = choice.of(&links, || twins(&slot, &primary, arguments.seed))?;
    let decided = (!decisions.is_empty()).then(|| found.decided(&links, &decisions));
    let chosen = decided.as_ref().unwrap_or(&found);
    let asked = (chosen, &decisions);
    let review = review::prepare(arguments, slot.kind(), cells, ids.as_ref(), &links, asked)?;
    let count = pairs::write(&arguments.out, &chosen.written(&links), ids.as_ref())
        .with_context(|| format!("cannot write {}", arguments.out.display()))?;
    let reviewed = review.map(|review| review.write(arguments)).transpose()?.unwrap_or_default();
    let mut text = format!(
        "linked {} with {} rows by `{}`: {:.2} s, {:.0} rows/s, peak memory {:.0} MB\n",
        primary.rows(),
        secondary.rows(),
        slot.kind(),
        seconds,
        primary.rows() as f64 / seconds.max(1e-9),
        peak_memory() as f64 / 1e6,
    );
    let equality = linker.about().equality;
    let compared = equality.then(|| comparisons(&slot.settings(), &primary));
    let missing = missing(&slot.settings());
    text += &summary::keys(&primary, &secondary, tables::names(arguments)[0], compared.as_deref(), &missing);
    text += &summary::text(&chosen.written(&links), secondary.rows());
    text += &chosen.told(&links);
    if !arguments.decisions.is_empty() {
        text += &decisions.told(&found.written(&links), &chosen.written(&links));
    }
    text += &truth.as_ref().map(|truth| chosen.quality(&links, truth)).unwrap_or_default();
    Ok(text + &format!("{count} pairs written to {}\n", arguments.out.display()) + &reviewed)
}

/// Candidates of a row that a threshold is estimated by.
const SECONDS: usize = 2;

/// The threshold where none is asked for: estimated where each row's best record, or pairs, are the links of texts.
fn usual_threshold(arguments: &Arguments, slot: &Slot<dyn Linker>, wanted: usize) -> Threshold {
    let as_links = wanted == 1 || arguments.assign.is_some();
    if as_links && ["clk", "edit", "tfidf"].contains(&slot.kind()) {
        Threshold::Auto
    } else {
        Threshold::None
    }
}

/// The primary linked with itself, two neighbours a row, if the linker has as many and takes its keys on both sides.
fn twins(slot: &Slot<dyn Linker>, primary: &Keys, seed: u64) -> anyhow::Result<Option<Links>> {
    let linker = choice::with_neighbours(slot, 2)?.build(&()).map_err(input)?;
    if linker.about().neighbours < 2 {
        return Ok(None);
    }
    Ok(Some(fet_core::linker::link(linker.as_ref(), primary, primary, seed, &|_| ()).map_err(input)?))
}

/// The links of all rows, and the seconds that they took.
fn search(linker: &dyn Linker, primary: &Keys, secondary: &Keys, seed: u64) -> anyhow::Result<(Links, f64)> {
    let neighbours = linker.about().neighbours;
    memory::check(primary.rows() as u128 * neighbours as u128, 8).map_err(|error| {
        input(format!(
            "--set neighbours={neighbours}: must leave memory for the links of {} rows ({error})",
            primary.rows()
        ))
    })?;
    let (start, progress) = (Instant::now(), Progress::new(primary.rows()));
    let (mut asker, mut owner) = (linker.asker(seed), linker.owner(seed));
    let links =
        link_between(asker.as_mut(), owner.as_mut(), primary, secondary, &|count| progress.add(count));
    drop(progress);
    // The message names the settings of an experiment; here they are arguments of `--set`.
    let links = links.map_err(|error| {
        input(error.to_string().replace("`linker.kind`", "`--linker`").replace("`linker.", "`--set "))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    for warning in owner.warnings() {
        fet_files::note!("warning: {}", warning.replace("`linker.", "`--set "));
    }
    Ok((links, seconds))
}

/// Refuses an unwritable output before any work is done.
pub(crate) fn check_output<'a>(
    out: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    output::check(out, inputs)?;
    let other = ["parquet", "arrow", "feather", "tsv", "zst", "zip", "xlsx", "xls", "ods", "json"];
    if out.extension().is_some_and(|ending| other.iter().any(|other| ending.eq_ignore_ascii_case(other))) {
        let problem = "links are written as CSV; name a .csv or .csv.gz file";
        return Err(input(format!("--out {}: {problem}", out.display())));
    }
    Ok(())
}

fn build(arguments: &Arguments, slot: &Slot<dyn Linker>) -> anyhow::Result<Box<dyn Linker>> {
    let linker = slot.build(&()).map_err(input)?;
    match &arguments.cache {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| {
                input(format!("--cache {}: {error} ({CACHE_VARIABLE} names the same)", folder.display()))
            })?;
            Ok(Box::new(Cached::new(linker, &slot.settings(), folder.clone())))
        }
        None => Ok(Cached::from_environment(linker, &slot.settings())),
    }
}
