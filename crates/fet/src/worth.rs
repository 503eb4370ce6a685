//! `fet worth`: measures the gain from federating, and says if it is worth the effort.
//!
//! The command trains every method on the primary's own columns and with the other parties, on the same
//! splits. The validation rows choose the best of each kind, and the test rows measure the gain. Then it
//! checks the best method with random links, without each party, and with fewer labels. Every run is a cell of
//! a study in the output folder, so that the same command resumes an interrupted one.

mod checks;
mod choice;
mod compare;
mod findings;
mod page;
mod plan;
mod private;
mod show;
mod verdict;

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use fet_eval::Metric;
use fet_io::input::input;
use fet_study::output::Failed;
use fet_study::{CollectRequest, CollectVariant, Collected, CollectedCell, Fet};

use crate::experiment_file::{self, ExperimentArguments, data_folders};
use crate::init::plan::{Request, plan as plan_experiment};
use crate::study::this_program;
use checks::Checks;
use choice::{Choice, figures, of_variant};
use compare::{constant, gain};
use findings::{RECOMMENDED, Worth};
use plan::{ExperimentFacts, MethodPair};
use verdict::MethodResult;

/// Arguments of `fet worth`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct WorthArguments {
    /// The primary's table, followed by the tables of the other parties; or one experiment file.
    #[arg(required = true, value_name = "TABLE")]
    tables: Vec<PathBuf>,
    /// Column of the primary's table to predict; required with tables.
    #[arg(long)]
    label: Option<String>,
    /// Columns that link the records, with the same names in all tables [default: the columns that all tables
    /// share].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    keys: Vec<String>,
    /// Values of ε to compare, for an experiment file with `[release]` [default: that of the file].
    #[arg(long, value_delimiter = ',', value_name = "E,F", allow_negative_numbers = true)]
    epsilon: Vec<f64>,
    /// Fewer splits, without the slowest method and most checks of the best one.
    #[arg(long)]
    quick: bool,
    /// Number of runs at the same time, each with one thread [default: the number of cores, at most 8].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Tensor backend, such as flex, ndarray, libtorch or libtorch-cuda.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
    /// Folder of the experiment, the runs and the answer.
    #[arg(long, default_value = "worth", value_name = "DIR")]
    out: PathBuf,
}

const AFTER_HELP: &str = "\
The folder DIR then has the experiment (experiment.toml), the answer (worth.html, worth.json), the best experiment
(recommended.toml), and two studies: methods/ (every method alone and with the other parties) and checks/ (the best
method with random links, without each party, and with fewer labels). The same command resumes an interrupted one.
An experiment file with `[release]` has another answer: the gain and the cost of the releases at each ε, and no HTML.
To change a choice of the experiment, edit DIR/experiment.toml and run `fet worth DIR/experiment.toml --out DIR2`.

Exit codes: 0 the answer is complete; 1 a run failed; 2 the input is invalid; 130 interrupted.";

/// File of the experiment for tables, in the output folder.
const EXPERIMENT: &str = "experiment.toml";
/// Files of the answer, and folders of the two studies, in the output folder.
const ANSWER: &str = "worth.json";
const PAGE: &str = "worth.html";
const METHODS: &str = "methods";
const CHECKS: &str = "checks";

/// Returns the number of splits for this number of labelled rows. Runs of fewer rows are shorter and differ more, so
/// they get more splits.
fn splits(rows: usize, quick: bool) -> u64 {
    match (rows, quick) {
        (..=3_000, false) => 10,
        (..=30_000, false) => 7,
        (..=30_000, true) | (_, false) => 5,
        (_, true) => 3,
    }
}

/// Runs the command. The exit code is 0 if the answer is complete, and 130 if the user interrupted it.
pub(crate) fn worth(arguments: &WorthArguments) -> anyhow::Result<ExitCode> {
    check_folder(&arguments.out)?;
    let Base { file: base, links } = experiment(arguments)?;
    let loaded = ExperimentArguments { file: base.clone(), ..ExperimentArguments::default() };
    let loaded = experiment_file::load(&loaded).map_err(|error| input(error.to_string()))?;
    // One message in place of one for each cell.
    fet_federation::data::read(&loaded, &data_folders(&loaded)).map_err(input)?;
    let facts = ExperimentFacts::new(&loaded.to_table());
    let mut runner = Runner::new(arguments, &base)?;
    if let Some(release) = &loaded.release {
        let epsilon = release.settings().get("epsilon").and_then(toml::Value::as_float).unwrap_or(1.0);
        return private::worth(arguments, &facts, epsilon, runner);
    }
    if !arguments.epsilon.is_empty() {
        return Err(input(format!(
            "--epsilon: needs an experiment file with `[release]`, whose ranges follow from public knowledge and not from the \
             tables (`fet help release`); {} has none",
            base.display()
        )));
    }
    let methods = plan::methods(&facts, arguments.quick);
    let variants = plan::pairs(&methods);
    // The first split shows the number of labelled rows.
    let Some(first) = runner.run(METHODS, &variants)? else { return Ok(ExitCode::from(130)) };
    let rows = first.first().context("the study lacks runs")?.report.rows;
    runner.seeds = (0..splits(rows.train + rows.validation + rows.test, arguments.quick)).collect();
    let Some(cells) = runner.run(METHODS, &variants)? else { return Ok(ExitCode::from(130)) };
    let metric = cells.first().context("the study lacks runs")?.report.metric;
    let results = method_results(&methods, &cells, metric)?;
    let choice = Choice::new(&methods, &results, metric)?;
    let checks = match arguments.quick {
        true => runner.run(CHECKS, &checks::random_links(&facts, &choice))?,
        false => runner.run(CHECKS, &checks::variants(&facts, &choice))?,
    };
    let Some(checked) = checks else { return Ok(ExitCode::from(130)) };
    let checks = Checks::new(&facts, &choice, &cells, &checked)?;
    let constant = constant(&of_variant(&cells, choice.alone.1.control));
    let answer = choice.answer(&results, checks.over_random, &cells, constant)?;
    let first_split = &cells[0].report.data.split;
    let worth = Worth {
        metric,
        label_rows: cells[0].report.rows,
        splits: runner.seeds.len(),
        quick: arguments.quick,
        has_recommended: base == arguments.out.join(EXPERIMENT),
        links,
        warnings: cells[0].report.warnings.clone(),
        same_split: cells.iter().all(|cell| cell.report.data.split == *first_split),
        constant,
        results,
        answer,
        checks,
    };
    let folder = &arguments.out;
    if worth.has_recommended {
        let text = plan::experiment_text(EXPERIMENT, &worth.answer.recommended.sets)?;
        fet_io::write(&folder.join(RECOMMENDED), text.as_bytes())?;
    }
    let json = serde_json::to_string_pretty(&worth).context("the answer is plain data")?;
    fet_io::write(&folder.join(ANSWER), format!("{json}\n").as_bytes())?;
    fet_io::write(&folder.join(PAGE), page::text(&worth, folder)?.as_bytes())?;
    let text = if arguments.json { format!("{json}\n") } else { show::text(&worth, folder) };
    fet_io::answer(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a folder with other files than those of this command, such as the folder of a run.
fn check_folder(out: &Path) -> anyhow::Result<()> {
    let refuse = |problem: String| Err(input(format!("--out {}: {problem}", out.display())));
    match out.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return refuse(format!("cannot be read: {error}")),
        Ok(found) if !found.is_dir() => return refuse("is a file; name a folder".to_string()),
        Ok(_) => {}
    }
    // An answer shows that this command wrote the folder; other files there are the user's.
    if out.join(ANSWER).is_file() && out.join(METHODS).is_dir() {
        return Ok(());
    }
    let own = [EXPERIMENT, RECOMMENDED, ANSWER, PAGE, METHODS, CHECKS];
    let entries = std::fs::read_dir(out).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let names = match entries {
        Ok(entries) => entries.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()),
        Err(error) => return refuse(format!("cannot be read: {error}")),
    };
    match names.filter(|name| !name.starts_with('.') && !own.contains(&name.as_str())).min() {
        Some(other) => {
            refuse(format!("has files of another origin, such as `{other}`; name a new or empty folder"))
        }
        None => Ok(()),
    }
}

/// Experiment of the runs.
struct Base {
    /// File that the user names, or that the command wrote for the tables.
    file: PathBuf,
    /// Ambiguity of the links to each other table; empty for a file that the user names.
    links: Vec<String>,
}

/// Finds the experiment, or writes one for the tables.
fn experiment(arguments: &WorthArguments) -> anyhow::Result<Base> {
    let WorthArguments { tables, label, keys, out, .. } = arguments;
    let is_experiment = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "toml");
    if tables.len() > 1
        && let Some(file) = tables.iter().find(|file| is_experiment(file))
    {
        return Err(input(format!(
            "{}: an experiment file names all tables; leave out the others",
            file.display()
        )));
    }
    if let [file] = tables.as_slice()
        && (is_experiment(file) || file.extension().is_none())
    {
        let file = fet_io::experiment(file);
        let file = file
            .canonicalize()
            .map_err(|error| input(format!("{}: cannot be read: {error}", file.display())))?;
        if label.is_some() || !keys.is_empty() {
            return Err(input("--label, --keys: an experiment file names them already; leave them out"));
        }
        let other = out.join(EXPERIMENT);
        if other.exists() && other.canonicalize().is_ok_and(|other| other != file) {
            return Err(input(format!(
                "--out {}: has the answer for another experiment; name another folder",
                out.display()
            )));
        }
        return Ok(Base { file, links: Vec::new() });
    }
    let label =
        label.clone().ok_or_else(|| input("--label: name the column of the primary's table to predict"))?;
    let file = out.join(EXPERIMENT);
    let known: Vec<PathBuf> =
        tables.iter().map(|table| table.canonicalize().unwrap_or_else(|_| table.clone())).collect();
    let planned = plan_experiment(&Request { tables: &known, label: &label, keys, file: &file })?;
    for warning in &planned.warnings {
        fet_io::note!("warning: {warning}");
    }
    let text = planned.experiment_text();
    match std::fs::read_to_string(&file) {
        Ok(old) if old == text => {}
        Ok(_) => {
            let file = file.display();
            return Err(input(format!(
                "{file}: is not the experiment for these tables. To use the file, run `fet worth {file} --out` with another \
                 folder; otherwise name another folder with --out"
            )));
        }
        Err(_) => {
            // Only here, so that a refusal leaves no empty folder.
            std::fs::create_dir_all(out).map_err(|error| {
                input(format!("--out {}: cannot create the folder: {error}", out.display()))
            })?;
            fet_io::write(&file, text.as_bytes())?;
        }
    }
    Ok(Base { file, links: planned.links })
}

/// Runs the studies of one command.
struct Runner<'a> {
    arguments: &'a WorthArguments,
    base: &'a Path,
    fet: Fet,
    jobs: NonZeroUsize,
    seeds: Vec<u64>,
}

impl<'a> Runner<'a> {
    fn new(arguments: &'a WorthArguments, base: &'a Path) -> anyhow::Result<Self> {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let jobs = arguments.jobs.unwrap_or_else(|| cores.min(NonZeroUsize::new(8).unwrap_or(cores)));
        let threads = (cores.get() / jobs.get()).max(1).to_string();
        let fet = match std::env::var_os("RAYON_NUM_THREADS") {
            None => this_program()?.with_variable("RAYON_NUM_THREADS", &threads),
            Some(_) => this_program()?,
        };
        Ok(Self { arguments, base, fet, jobs, seeds: vec![0] })
    }

    /// Runs a study of these variants. Returns `None` if the user interrupted it.
    fn run(&self, name: &str, variants: &[CollectVariant]) -> anyhow::Result<Option<Vec<CollectedCell>>> {
        if variants.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let request = CollectRequest {
            file: self.base,
            name,
            variants,
            seeds: &self.seeds,
            out: &self.arguments.out,
            jobs: self.jobs,
            device: self.arguments.device.as_deref(),
        };
        match fet_study::collect(&request, &self.fet).map_err(crate::study::classified)? {
            Collected::Interrupted { done, all } => {
                fet_io::note!("interrupted: {done} of {all} runs are done; the same command resumes");
                Ok(None)
            }
            Collected::Ended { failures, .. } if !failures.is_empty() => {
                let all = failures.join("\n  ");
                Err(Failed(format!(
                    "{} runs failed; the same command retries them:\n  {all}",
                    failures.len()
                ))
                .into())
            }
            Collected::Ended { cells, .. } => Ok(Some(cells)),
        }
    }
}

fn method_results(
    methods: &[MethodPair],
    cells: &[CollectedCell],
    metric: Metric,
) -> anyhow::Result<Vec<MethodResult>> {
    let result = |method: &MethodPair| {
        let (with, alone) = (of_variant(cells, method.name), of_variant(cells, method.control));
        Ok(MethodResult {
            name: method.name.to_string(),
            receives: method.receives,
            alone: figures(&alone),
            with: figures(&with),
            gain: gain(&with, &alone, metric)?,
        })
    };
    methods.iter().map(result).collect()
}
