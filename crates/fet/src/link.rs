//! `fet link`: links two tables by their keys, writes the neighbours, and reports quality and speed.
//!
//! The user has both tables, so nothing is protected here; `fet list linker` shows what a linker protects between
//! parties. Everything is checked before anything is written, and the output is written atomically.

mod choice;
mod summary;
mod truth;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use fet_core::data::{KeyKind, Keys};
use fet_core::linker::{Linker, Links, link_between};
use fet_core::memory;
use fet_core::registry::Slot;
use fet_data::{read_keys, read_texts};
use fet_linkers::{CACHE_VARIABLE, Cached};
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::choice::{Assign, Threshold};
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
    /// similar the primary's own rows are to each other; or `none` [default: auto for texts where K is 1 or pairs are assigned, else none].
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
    let (slot, primary, secondary) = prepare(arguments)?;
    let ids = ids(arguments)?;
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
    let neighbours = linker.about().neighbours;
    memory::check(primary.rows() as u128 * neighbours as u128, 8).map_err(|error| {
        input(format!(
            "--set neighbours={neighbours}: must leave memory for the links of {} rows ({error})",
            primary.rows()
        ))
    })?;
    let bar = bar(primary.rows());
    let start = Instant::now();
    let told = Told { rows: primary.rows(), start, progress: Mutex::new((0, start)) };
    let done = |count: usize| {
        bar.inc(count as u64);
        told.add(count);
    };
    let (mut asker, mut owner) = (linker.asker(arguments.seed), linker.owner(arguments.seed));
    let links = link_between(asker.as_mut(), owner.as_mut(), &primary, &secondary, &done);
    bar.finish_and_clear();
    // The message names the settings of an experiment; here they are arguments of `--set`.
    let links = links.map_err(|error| {
        input(error.to_string().replace("`linker.kind`", "`--linker`").replace("`linker.", "`--set "))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    for warning in owner.warnings() {
        fet_files::note!("warning: {warning}");
    }
    let estimate = match threshold {
        Threshold::Auto => choice::estimate(&slot, &links, &primary, secondary.rows(), arguments.seed)?,
        Threshold::None | Threshold::At(_) => None,
    };
    let floor = linker.about().floor;
    let given = if let Threshold::At(given) = threshold { Some(given) } else { None };
    let mut every = Pairs { links: &links, floor, threshold: given, wanted: searched, assigned: None };
    if arguments.assign.is_some() {
        let of_row =
            |row: usize| every.row(row).map(move |(rank, record, s)| (row, rank, record, s.unwrap_or(0.0)));
        let all = (0..links.rows()).flat_map(of_row).collect();
        every.assigned = Some(choice::one_to_one(links.rows(), secondary.rows(), all));
    }
    let threshold = estimate.map(|estimate| estimate.threshold).or(given);
    let pairs = Pairs { threshold, wanted, assigned: every.assigned.clone(), ..every };
    let every = Pairs { wanted: links.available(), ..every };
    let written = write(&arguments.out, &pairs, ids.as_ref())
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
    text += &summary::text(&pairs, &primary, &secondary);
    if let Some(assigned) = &every.assigned {
        let lost = (0..links.rows())
            .filter(|&row| assigned[row].is_none() && links.similarities(row).is_some())
            .count();
        text += &format!(
            "one to one: {lost} rows have no pair, since others are more like their {searched} candidates, or none is like them\n"
        );
    }
    if let Some(estimate) = &estimate {
        text += &format!(
            "threshold {:.4}, estimated: {:.1} % of the links are expected to be right, and {:.1} % of {:.0} matches to be linked \
             (--threshold none writes every pair)\n",
            estimate.threshold,
            100.0 * estimate.precision(),
            100.0 * estimate.recall(),
            estimate.matches
        );
    } else if arguments.threshold == Some(Threshold::Auto) {
        text += "no threshold could be estimated: there are too few rows, one neighbour or no similarity, or no match is expected\n";
    }
    if let Some(truth) = &truth {
        text += &truth::text(&every, truth);
        if estimate.is_some() {
            text += &truth::written(&pairs, truth);
        }
    }
    text += &format!("{written} pairs written to {}\n", arguments.out.display());
    Ok(text)
}

/// The links, and which of them are counted.
struct Pairs<'a> {
    links: &'a Links,
    /// At or below it a pair is not a link.
    floor: Option<f32>,
    /// Below it a pair is left out.
    threshold: Option<f32>,
    /// Candidates beyond so many are left out, where none are assigned.
    wanted: usize,
    /// The rank of each row's only pair, if it has one.
    assigned: Option<Vec<Option<usize>>>,
}

impl Pairs<'_> {
    /// Rank (from 0), record and similarity of the counted links of a row.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, u32, Option<f32>)> {
        let similarities = self.links.similarities(row);
        let pairs = self.links.row(row)[..self.links.available()].iter().enumerate();
        let all = pairs.map(move |(rank, &record)| (rank, record, similarities.map(|all| all[rank])));
        let (floor, threshold, wanted) = (self.floor, self.threshold, self.wanted);
        let assigned = self.assigned.as_ref().map(|assigned| assigned[row]);
        all.filter(move |&(rank, _, similarity)| {
            let chosen = assigned.map_or(rank < wanted, |own| own == Some(rank));
            chosen
                && similarity
                    .is_none_or(|s| floor.is_none_or(|floor| s > floor) && threshold.is_none_or(|t| s >= t))
        })
    }
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

/// The linker's settings and both sides' keys.
fn prepare(arguments: &Arguments) -> anyhow::Result<(Slot<dyn Linker>, Keys, Keys)> {
    let names = &arguments.keys;
    let others = if arguments.secondary_keys.is_empty() { names } else { &arguments.secondary_keys };
    if names.len() != others.len() {
        let problem =
            format!("must name as many columns as --keys ({}); it names {}", names.len(), others.len());
        return Err(input(format!("--secondary-keys: {problem}")));
    }
    let read = |kind| -> anyhow::Result<(Keys, Keys)> {
        let primary = read_keys(&arguments.primary, names, kind).map_err(input)?;
        let secondary = read_keys(&arguments.secondary, others, kind).map_err(input)?;
        if primary.kind_name() == secondary.kind_name() {
            return Ok((primary, secondary));
        }
        // If a key of one side is not a number, both sides' keys are text.
        let primary = read_keys(&arguments.primary, names, KeyKind::Text).map_err(input)?;
        Ok((primary, read_keys(&arguments.secondary, others, KeyKind::Text).map_err(input)?))
    };
    if let Some(kind) = &arguments.linker {
        let slot = slot(arguments, kind)?;
        let takes = slot.build(&()).map_err(input)?.about().takes;
        let (primary, secondary) = read(takes)?;
        return Ok((slot, primary, secondary));
    }
    // The keys choose the linker: they must be of one kind, and no wrong cell may decide it.
    let primary = read_keys(&arguments.primary, names, KeyKind::Either).map_err(input)?;
    let secondary = read_keys(&arguments.secondary, others, KeyKind::Either).map_err(input)?;
    for (keys, file, names) in
        [(&primary, &arguments.primary, names), (&secondary, &arguments.secondary, others)]
    {
        refuse_stray_cell(keys, file, names)?;
    }
    if primary.kind_name() != secondary.kind_name() {
        return Err(input(format!(
            "--keys: {} of {} are {}, {} of {} are {}; name columns of one kind, or a linker for texts, as --linker clk",
            names.join(", "),
            arguments.primary.display(),
            primary.kind_name(),
            others.join(", "),
            arguments.secondary.display(),
            secondary.kind_name()
        )));
    }
    let kind = if primary.numbers().is_some() { "nearest" } else { "clk" };
    Ok((slot(arguments, kind)?, primary, secondary))
}

/// Refuses texts where every key column holds mostly numbers: a wrong cell must not choose the linker.
fn refuse_stray_cell(keys: &Keys, file: &Path, names: &[String]) -> anyhow::Result<()> {
    let Some(table) = keys.text() else { return Ok(()) };
    let is_number = |cell: &&String| cell.trim().parse::<f64>().is_ok_and(f64::is_finite);
    let column = |at: usize| table.cells().iter().skip(at).step_by(names.len());
    let mostly = |at: usize| 2 * column(at).filter(is_number).count() > column(at).count();
    if !(0..names.len()).all(mostly) {
        return Ok(());
    }
    for (at, name) in names.iter().enumerate() {
        if let Some((row, cell)) = column(at).enumerate().find(|(_, cell)| !is_number(cell)) {
            return Err(input(format!(
                "{} data row {} column `{name}`: must be a number, as most cells of the column are; it is {cell:?} (mend it, or name a \
                 linker for texts, as --linker clk)",
                file.display(),
                row + 1
            )));
        }
    }
    Ok(())
}

fn slot(arguments: &Arguments, kind: &str) -> anyhow::Result<Slot<dyn Linker>> {
    let mut table = toml::Table::new();
    for assignment in &arguments.sets {
        let assignment = match assignment.split_once('=') {
            Some((name, value)) if name.trim() == "k" => format!("neighbours={value}"),
            _ => assignment.clone(),
        };
        fet_core::experiment::set(&mut table, &assignment)
            .map_err(|error| input(format!("--set {error}")))?;
    }
    if table.contains_key("kind") {
        return Err(input("--set kind: name the linker with --linker"));
    }
    table.insert("kind".into(), kind.into());
    Slot::from_table(table).map_err(|error| input(format!("--linker {kind}: {error}")))
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

/// Both tables' ids, if their columns are given.
fn ids(arguments: &Arguments) -> anyhow::Result<Option<[Vec<String>; 2]>> {
    let read = |path: &Path, column: &String| -> anyhow::Result<Vec<String>> {
        read_texts(path, std::slice::from_ref(column)).map_err(input)
    };
    match arguments.id.as_slice() {
        [] => Ok(None),
        [both] => Ok(Some([read(&arguments.primary, both)?, read(&arguments.secondary, both)?])),
        [first, second] => Ok(Some([read(&arguments.primary, first)?, read(&arguments.secondary, second)?])),
        more => Err(input(format!("--id: must name one column or two; it names {}", more.len()))),
    }
}

/// Progress in lines, where there is no terminal to show a bar on.
struct Told {
    rows: usize,
    start: Instant,
    /// Rows that are done, and when that was told last.
    progress: Mutex<(usize, Instant)>,
}

/// A line of progress is told no more often than this.
const PAUSE: Duration = Duration::from_secs(10);

impl Told {
    fn add(&self, count: usize) {
        let mut progress = self.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        progress.0 += count;
        if std::io::stderr().is_terminal() || progress.1.elapsed() < PAUSE || progress.0 >= self.rows {
            return;
        }
        progress.1 = Instant::now();
        let (done, seconds) = (progress.0, self.start.elapsed().as_secs_f64());
        let left = seconds * (self.rows as f64 / done.max(1) as f64 - 1.0);
        fet_files::note!("linked {done} of {} rows, about {left:.0} s left", self.rows);
    }
}

fn bar(rows: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("linking {bar:30} {percent:>3}% {pos}/{len} rows, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Writes the counted pairs, and returns their number.
fn write(out: &Path, pairs: &Pairs<'_>, ids: Option<&[Vec<String>; 2]>) -> std::io::Result<usize> {
    if out == Path::new(output::STANDARD) {
        let mut text = Vec::new();
        let written = rows(&mut text, pairs, ids)?;
        fet_files::answer(&String::from_utf8_lossy(&text))?;
        return Ok(written);
    }
    fet_files::write_with(out, |file| {
        if out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")) {
            let mut encoder = GzEncoder::new(file, Compression::default());
            let written = rows(&mut encoder, pairs, ids)?;
            encoder.finish()?;
            return Ok(written);
        }
        rows(file, pairs, ids)
    })
}

fn rows(file: &mut dyn Write, pairs: &Pairs<'_>, ids: Option<&[Vec<String>; 2]>) -> std::io::Result<usize> {
    write!(file, "primary_row,secondary_row,rank,similarity")?;
    writeln!(file, "{}", if ids.is_some() { ",primary_id,secondary_id" } else { "" })?;
    let mut written = 0;
    for row in 0..pairs.links.rows() {
        for (rank, record, similarity) in pairs.row(row) {
            write!(file, "{row},{record},{}", rank + 1)?;
            match similarity {
                Some(similarity) => write!(file, ",{similarity}")?,
                None => write!(file, ",")?,
            }
            if let Some([primary, secondary]) = ids {
                write!(file, ",{},{}", quoted(&primary[row]), quoted(&secondary[record as usize]))?;
            }
            writeln!(file)?;
            written += 1;
        }
    }
    Ok(written)
}

/// A cell of CSV.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
