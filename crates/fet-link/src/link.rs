//! `fet link`: links two tables by their keys, writes the neighbours, and reports quality and speed.
//!
//! The user has both tables, so the command protects nothing. `fet list linker` shows the protection of each
//! linker between parties. The command checks all arguments before it writes anything, and writes the output
//! atomically.

mod arguments;
mod candidates;
mod choice;
mod decisions;
mod named;
pub(crate) mod pairs;
pub(crate) mod progress;
mod review;
mod separate;
mod spreadsheet;
mod summary;
mod tables;
mod truth;

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use fet_core::data::Keys;
use fet_core::linker::{About, Linker, Links, link_between};
use fet_core::linker::{CACHE_VARIABLE, Cached};
use fet_core::registry::Slot;
use fet_io::memory;
use fet_linkers::{comparisons, missing};

use self::arguments::{Assign, Threshold};
use self::choice::{CANDIDATES, Choice};
use self::decisions::{Cells, Decisions};
use self::progress::RowProgress;
use self::review::LinkedTables;
use fet_io::input::input;
use fet_io::memory::peak_memory;
use fet_io::output;

pub use self::arguments::LinkArguments;

/// `fet link` on two tables, or one of its subcommands.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct LinkCommand {
    #[command(subcommand)]
    separate: Option<separate::SeparateLinkCommand>,
    #[command(flatten)]
    tables: Option<LinkArguments>,
}

impl LinkCommand {
    /// Runs the command. Returns its summary, and true if the links go to standard output, so that the
    /// summary must go to standard error.
    pub fn run(&self) -> anyhow::Result<(String, bool)> {
        if let Some(command) = &self.separate {
            return Ok((separate::run(command)?, command.writes_to(Path::new(output::STANDARD))));
        }
        let arguments = self.tables.as_ref().ok_or_else(|| input("fet link: name two tables"))?;
        Ok((link(arguments)?, arguments.out == Path::new(output::STANDARD)))
    }
}

/// Links the tables, writes the links, and returns the summary as text.
pub fn link(arguments: &LinkArguments) -> anyhow::Result<String> {
    let inputs = [&arguments.primary, &arguments.secondary];
    let inputs = inputs.into_iter().chain(&arguments.truth).chain(&arguments.decisions);
    pairs::check_output(&arguments.out, inputs.clone())?;
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
    let threshold = arguments.threshold.unwrap_or_else(|| usual_threshold(arguments, &about));
    if threshold == Threshold::Auto && !(about.has_threshold || about.probabilities) {
        return Err(input(format!(
            "--threshold auto: works with the linkers clk, edit and tfidf; no threshold can be estimated for the similarities \
             of `{}`. Set --threshold NUMBER, or leave it out.",
            slot.kind()
        )));
    }
    review::check(arguments, threshold, about.similarities, inputs)?;
    let searched = match arguments.assign {
        Some(Assign::OneToOne) => wanted.max(CANDIDATES.min(secondary.rows())),
        None => wanted,
    };
    let least = if threshold == Threshold::Auto { CANDIDATES } else { searched };
    let reached = searched.max((searched + decisions.most_rejected()).max(least).min(secondary.rows()));
    let slot = if reached == wanted { slot } else { choice::with_neighbours(&slot, reached)? };
    let linker = build(arguments, &slot)?;
    let (links, seconds) = search(linker.as_ref(), &primary, &secondary, arguments.seed)?;
    let About { floor, probabilities, .. } = linker.about();
    let (assign, records) = (arguments.assign, secondary.rows());
    let choice = Choice { floor, probabilities, threshold, assign, wanted, searched, records };
    let found = choice.select(&links, || link_with_itself(&slot, &primary, arguments.seed))?;
    let decided = (!decisions.is_empty()).then(|| found.decided(&links, &decisions));
    let chosen = decided.as_ref().unwrap_or(&found);
    let linked =
        LinkedTables { linker: slot.kind(), ids: ids.as_ref(), links: &links, chosen, decisions: &decisions };
    let review = review::prepare(arguments, &linked, cells)?;
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
    text += &chosen.describe(&links);
    if !arguments.decisions.is_empty() {
        text += &decisions.describe(&found.written(&links), &chosen.written(&links));
    }
    text += &truth.as_ref().map(|truth| chosen.quality(&links, truth)).unwrap_or_default();
    Ok(text + &format!("{count} pairs written to {}\n", arguments.out.display()) + &reviewed)
}

/// Returns the threshold for a command without `--threshold`: `auto` if the links are each row's best record or one-to-one pairs.
fn usual_threshold(arguments: &LinkArguments, about: &About) -> Threshold {
    let as_links = about.neighbours == 1 || arguments.assign.is_some();
    if as_links && about.has_threshold { Threshold::Auto } else { Threshold::None }
}

/// Links the primary with itself, two neighbours per row. Returns `None` if the linker cannot return two
/// neighbours.
fn link_with_itself(slot: &Slot<dyn Linker>, primary: &Keys, seed: u64) -> anyhow::Result<Option<Links>> {
    let linker = choice::with_neighbours(slot, 2)?.build(&()).map_err(input)?;
    if linker.about().neighbours < 2 {
        return Ok(None);
    }
    Ok(Some(fet_core::linker::link(linker.as_ref(), primary, primary, seed, &|_| ()).map_err(input)?))
}

/// Returns the links of all rows, and the time of the search in seconds.
fn search(linker: &dyn Linker, primary: &Keys, secondary: &Keys, seed: u64) -> anyhow::Result<(Links, f64)> {
    let neighbours = linker.about().neighbours;
    memory::check(primary.rows() as u128 * neighbours as u128, 8).map_err(|error| {
        input(format!(
            "--set neighbours={neighbours}: must leave memory for the links of {} rows ({error})",
            primary.rows()
        ))
    })?;
    let (start, progress) = (Instant::now(), RowProgress::new(primary.rows()));
    let (mut querier, mut data_holder) = (linker.querier(seed), linker.data_holder(seed));
    let links = link_between(querier.as_mut(), data_holder.as_mut(), primary, secondary, &|count| {
        progress.add(count)
    });
    drop(progress);
    // The message names settings of an experiment; here the user sets them with `--set`.
    let links = links.map_err(|error| {
        input(error.to_string().replace("`linker.kind`", "`--linker`").replace("`linker.", "`--set "))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    for warning in data_holder.warnings() {
        fet_io::note!("warning: {}", warning.replace("`linker.", "`--set "));
    }
    Ok((links, seconds))
}

fn build(arguments: &LinkArguments, slot: &Slot<dyn Linker>) -> anyhow::Result<Box<dyn Linker>> {
    let linker = slot.build(&()).map_err(input)?;
    match &arguments.cache {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| {
                input(format!(
                    "--cache {}: {error} ({CACHE_VARIABLE} also sets this folder)",
                    folder.display()
                ))
            })?;
            Ok(Box::new(Cached::new(linker, &slot.settings(), folder.clone())))
        }
        None => Ok(Cached::from_environment(linker, &slot.settings())),
    }
}
