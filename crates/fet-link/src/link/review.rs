//! Clerical review: shows the pairs nearest the threshold side by side, for a person to decide. `--decisions`
//! reads the decisions back.
//!
//! Both files show rows of both tables, so only the user who made them may read them.

mod content;
mod difference;
mod page;
mod sheet;

use std::path::{Path, PathBuf};

use anyhow::Context;
use fet_core::linker::Links;

use super::arguments::{LinkArguments, Threshold};
use super::choice::Chosen;
use super::decisions::{self, Cells, Decisions};
use super::tables;
use content::{PairToReview, Review};

use fet_io::input::input;
use fet_io::output;

/// File names of a review.
const PAGE: &str = "review.html";
const SHEET: &str = "review.csv";

/// Refuses a review that cannot be written, would overwrite decisions, or lacks a threshold, before any work.
pub(super) fn check<'a>(
    arguments: &LinkArguments,
    threshold: Threshold,
    similarities: bool,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    let Some(place) = &arguments.review else { return Ok(()) };
    let refuse = |problem: String| Err(input(format!("--review {}: {problem}", place.display())));
    if threshold == Threshold::None {
        return refuse("needs a threshold; add --threshold auto or a number".into());
    }
    if !similarities {
        return refuse("needs similarities, which this linker does not give; choose another linker".into());
    }
    if let Err(problem) = output::check_name(place) {
        return refuse(problem);
    }
    if place.exists() && !place.is_dir() {
        return refuse("this is a file; name a folder".into());
    }
    if same_place(place, &arguments.out) {
        return refuse("is also the file of --out; name another folder".into());
    }
    if !place.exists() {
        // The command creates the folder at the end; this check finds out now whether it can.
        return output::check_as("--review", &place.components().collect::<PathBuf>(), []);
    }
    let inputs: Vec<&PathBuf> = inputs.into_iter().collect();
    for file in [PAGE, SHEET].map(|name| place.join(name)) {
        output::check_as("--review", &file, inputs.iter().copied())?;
        if same_place(&file, &arguments.out) {
            return refuse(format!("{} is also the file of --out; name another file", file.display()));
        }
    }
    keeps_decisions(&place.join(SHEET))
}

/// Refuses to overwrite a file with decisions.
fn keeps_decisions(sheet: &Path) -> anyhow::Result<()> {
    // Reading a file of another kind, such as a pipe, could block; a file with only a header contains no decisions.
    let has_rows = || fet_io::read(sheet).is_ok_and(|bytes| bytes.trim_ascii().contains(&b'\n'));
    if !sheet.is_file() || !has_rows() {
        return Ok(());
    }
    let decided = decisions::any_in(sheet).map_err(|error| {
        input(format!("{error}. --review would overwrite the file: move it away, or name another folder."))
    })?;
    if decided {
        return Err(input(format!(
            "--review: {} contains decisions, which would be lost. Name another folder, and pass the file with \
             --decisions.",
            sheet.display()
        )));
    }
    Ok(())
}

/// Returns true if both paths name the same file, which need not exist.
fn same_place(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((parent.canonicalize().ok()?, path.file_name()?.to_os_string()))
    };
    whole(a).is_some_and(|a| whole(b) == Some(a))
}

/// Review that is ready to be written.
pub(super) struct RenderedReview {
    page: String,
    sheet: String,
    pairs: usize,
}

/// Result of linking two tables, as a review needs it.
pub(super) struct LinkedTables<'a> {
    pub(super) linker: &'a str,
    pub(super) ids: Option<&'a [Vec<String>; 2]>,
    pub(super) links: &'a Links,
    pub(super) chosen: &'a Chosen,
    pub(super) decisions: &'a Decisions,
}

/// Prepares the review if the user asks for one; writes nothing.
pub(super) fn prepare(
    arguments: &LinkArguments,
    linked: &LinkedTables<'_>,
    cells: Cells,
) -> anyhow::Result<Option<RenderedReview>> {
    if arguments.review.is_none() {
        return Ok(None);
    }
    let Some(threshold) = linked.chosen.threshold() else {
        return Err(input(no_threshold(linked.links)));
    };
    let names = tables::names(arguments);
    let pairs = select(linked, threshold, arguments.review_pairs.get());
    let review = Review { arguments, linker: linked.linker, threshold, ids: linked.ids, names, cells, pairs };
    let page = page::text(&review)?;
    Ok(Some(RenderedReview { page, sheet: sheet::text(&review), pairs: review.pairs.len() }))
}

/// Returns the error for a missing threshold, with a suggestion.
fn no_threshold(links: &Links) -> String {
    let mut best: Vec<f32> =
        (0..links.rows()).filter_map(|row| links.similarities(row)?.first().copied()).collect();
    best.sort_unstable_by(f32::total_cmp);
    let known = best.get(best.len() / 2).map(|median| {
        format!(" with --threshold NUMBER (the best records' median similarity is {median:.4})")
    });
    format!("--review: needs a threshold, but none could be estimated. Set one{}", known.unwrap_or_default())
}

/// Returns the `count` undecided pairs nearest the threshold, the nearest first.
///
/// If pairs are assigned, pairs that lose to a more similar pair come last, because the decision about that
/// pair settles them.
fn select(linked: &LinkedTables<'_>, threshold: f32, count: usize) -> Vec<PairToReview> {
    let LinkedTables { links, chosen, decisions, .. } = linked;
    let contest = chosen.contest(links);
    let (written, every) = (chosen.written(links), chosen.every(links));
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    if contest.is_some() {
        (rows, records) = decisions.confirmed().unzip();
        rows.sort_unstable();
        records.sort_unstable();
    }
    let order = |a: &PairToReview, b: &PairToReview| {
        let from = |pair: &PairToReview| (pair.similarity - threshold).abs();
        a.beaten.cmp(&b.beaten).then(from(a).total_cmp(&from(b))).then((a.row, a.rank).cmp(&(b.row, b.rank)))
    };
    let mut asked: Vec<PairToReview> = Vec::new();
    for row in 0..links.rows() {
        let of_row = every.candidates.row(row).enumerate();
        for (rank, candidate) in of_row.take(if contest.is_some() { usize::MAX } else { written.wanted }) {
            let Some(similarity) = candidate.similarity else { continue };
            let settled = decisions.has((row as u32, candidate.record))
                || rows.binary_search(&(row as u32)).is_ok()
                || records.binary_search(&candidate.record).is_ok();
            if settled || every.floor.is_some_and(|floor| similarity <= floor) {
                continue;
            }
            let beaten = contest.as_ref().is_some_and(|assigned| assigned[row] != Some(rank));
            let linked = written.has(row, candidate.record);
            asked.push(PairToReview { row, record: candidate.record, similarity, rank, linked, beaten });
        }
        // Drop distant candidates early, because a million rows have too many candidates to keep.
        if asked.len() > 4 * count.max(10_000) {
            asked.sort_unstable_by(order);
            asked.truncate(count);
        }
    }
    asked.sort_unstable_by(order);
    asked.truncate(count);
    asked
}

impl RenderedReview {
    /// Writes both files, and returns a line for people.
    pub(super) fn write(&self, arguments: &LinkArguments) -> anyhow::Result<String> {
        let Some(place) = &arguments.review else { return Ok(String::new()) };
        for (name, text) in [(PAGE, &self.page), (SHEET, &self.sheet)] {
            let path = place.join(name);
            fet_io::write_private(&path, text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let few = if self.pairs < arguments.review_pairs.get() { ", all that remain," } else { "" };
        Ok(format!(
            "{} pairs to decide{few} written to {} and {SHEET}; pass the decisions with --decisions\n",
            self.pairs,
            place.join(PAGE).display()
        ))
    }
}
