//! `fet link`: links two tables by their keys, writes the neighbours, and reports quality and speed.
//!
//! The user has both tables, so nothing is protected here; `fet list linker` shows what a linker protects between
//! parties. Everything is checked before anything is written, and the output is written atomically.

mod choice;
mod pairs;
mod progress;
mod summary;
mod tables;
mod truth;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use fet_core::data::Keys;
use fet_core::linker::{Linker, Links, link_between};
use fet_core::memory;
use fet_core::registry::Slot;
use fet_linkers::{CACHE_VARIABLE, Cached};

use self::choice::{Assign, Threshold};
use self::pairs::Pairs;
use self::progress::Progress;
use crate::input::input;
use crate::memory::peak_memory;
use crate::output;

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
    /// similar the primary's own rows are to each other (they are linked too, which takes its time); or `none` [default: auto for texts where K is 1 or pairs are assigned, else none].
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
    /// The seed of the linker.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// A folder for cached links; default: that of FET_LINK_CACHE, if set.
    #[arg(long)]
    pub cache: Option<PathBuf>,
}

/// Links, writes, and returns the summary as text.
pub fn link(arguments: &Arguments) -> anyhow::Result<String> {
    check_output(arguments)?;
    let (slot, primary, secondary) = tables::prepare(arguments)?;
    let ids = tables::ids(arguments)?;
    let truth = arguments
        .truth
        .as_deref()
        .map(|path| truth::read(path, &ids, primary.rows(), secondary.rows()))
        .transpose()?;
    let wanted = slot.build(&()).map_err(input)?.about().neighbours;
    let threshold = arguments.threshold.unwrap_or_else(|| {
        let as_links = wanted == 1 || arguments.assign.is_some();
        if as_links && ["clk", "edit", "tfidf"].contains(&slot.kind()) {
            Threshold::Auto
        } else {
            Threshold::None
        }
    });
    let searched = match arguments.assign {
        Some(Assign::OneToOne) => wanted.max(choice::CANDIDATES.min(secondary.rows())),
        None => wanted,
    };
    let slot = if searched == wanted { slot } else { choice::with_neighbours(&slot, searched)? };
    let linker = build(arguments, &slot)?;
    let (links, seconds) = search(linker.as_ref(), &primary, &secondary, arguments.seed)?;
    let estimate = match threshold {
        Threshold::Auto => choice::estimate(&slot, &links, &primary, secondary.rows(), arguments.seed)?,
        Threshold::None | Threshold::At(_) => None,
    };
    let given = if let Threshold::At(given) = threshold { Some(given) } else { None };
    let candidates = Pairs {
        links: &links,
        floor: linker.about().floor,
        threshold: given,
        wanted: links.available(),
        assigned: None,
    };
    let assigned = arguments.assign.map(|Assign::OneToOne| choice::one_to_one(&candidates, secondary.rows()));
    let every = Pairs { assigned: assigned.as_deref(), ..candidates };
    let written = Pairs { threshold: estimate.map(|estimate| estimate.threshold).or(given), wanted, ..every };
    let count = pairs::write(&arguments.out, &written, ids.as_ref())
        .with_context(|| format!("cannot write {}", arguments.out.display()))?;
    let mut text = format!(
        "linked {} with {} rows by `{}`: {:.2} s, {:.0} rows/s, peak memory {:.0} MB\n",
        primary.rows(),
        secondary.rows(),
        slot.kind(),
        seconds,
        primary.rows() as f64 / seconds.max(1e-9),
        peak_memory() as f64 / 1e6,
    );
    text += &summary::text(&written, &primary, &secondary);
    text += &choice::told(&every, estimate.as_ref(), arguments.threshold == Some(Threshold::Auto));
    if let Some(truth) = &truth {
        text += &truth::text(&every, truth);
        if estimate.is_some() {
            text += &truth::written(&written, truth);
        }
    }
    text += &format!("{count} pairs written to {}\n", arguments.out.display());
    Ok(text)
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
        fet_files::note!("warning: {warning}");
    }
    Ok((links, seconds))
}

/// Refuses an unwritable output before any work is done.
fn check_output(arguments: &Arguments) -> anyhow::Result<()> {
    let out = &arguments.out;
    let tables = [&arguments.primary, &arguments.secondary].into_iter().chain(&arguments.truth);
    output::check(out, tables)?;
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
