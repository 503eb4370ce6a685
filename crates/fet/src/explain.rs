//! `fet explain`: what a finished run's model makes of its test rows without a column, and without a party.
//!
//! A column's importance is how much worse the main metric gets when the column is shuffled (Breiman 2001); a party's is how
//! much worse it gets when its part is left out of the sum, and its Shapley value is the mean of that over all orders in
//! which parties join. They speak of this model: columns that say the same hide each other. All parties' tables are read, as
//! only a simulation can.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fet_chart::{Mark, Panel, Picture, Series, Size};
use fet_core::data::PartyTable;
use fet_core::rng::{Purpose, stream};
use fet_scores::importance::{Importance, permutation_importance};
use fet_scores::shapley::{Shapley, shapley};
use fet_scores::{Metric, Predictions};
use fet_train::data::{divided, read};
use fet_train::schedule;
use fet_train::trainer::{NewRecords, SavedModel};
use serde::Serialize;

use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::input::{InputError, input};
use crate::predict::Served;
use crate::provenance::Provenance;

/// The file of an explanation, in the folder of its run.
const FILE: &str = "explanation.json";
/// Its picture.
const PICTURE: &str = "explanation.svg";
/// How many orders of more than eight parties are drawn, each with its reverse.
const PAIRS: usize = 32;

/// The greatest number of shuffles of a column.
const MOST_REPEATS: usize = 10_000;

/// The arguments of `fet explain`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The folder of a finished run.
    pub run: PathBuf,
    /// How many test rows are explained, the first of them; 0 for all.
    #[arg(long, default_value_t = 1000)]
    pub rows: usize,
    /// How often each column is shuffled.
    #[arg(long, default_value_t = 5)]
    pub repeats: usize,
    /// The folder for the explanation [default: that of the run].
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// What a model makes of its columns and its parties.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The metric.
    pub metric: Metric,
    /// The test rows that were used.
    pub rows: usize,
    /// The metric with everything.
    pub with_all: f64,
    /// How often each column was shuffled.
    pub repeats: usize,
    /// Columns, the most important first.
    pub columns: Vec<ColumnImportance>,
    /// The secondaries; nothing where the method has none.
    pub parties: Option<Parties>,
}

/// A column's importance.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnImportance {
    /// Whose it is.
    pub party: String,
    /// Its name; its number where it has none.
    pub column: String,
    /// How much worse the metric gets without it.
    pub importance: Importance,
}

/// What the secondaries add.
#[derive(Debug, Clone, Serialize)]
pub struct Parties {
    /// Their names.
    pub names: Vec<String>,
    /// How much worse the metric gets when one is left out of the sum.
    pub left_out: Vec<f64>,
    /// Their Shapley values: how much better the metric is with each, over all orders in which they join.
    pub shapley: Shapley,
}

/// Explains a run, writes the explanation, and returns it as text.
pub fn explain(arguments: &Arguments) -> anyhow::Result<String> {
    if !(1..=MOST_REPEATS).contains(&arguments.repeats) {
        return Err(input(format!(
            "--repeats: must be from 1 to {MOST_REPEATS}; it is {}",
            arguments.repeats
        )));
    }
    let run = FinishedRun::read(&arguments.run)?;
    let out = arguments.out.clone().unwrap_or_else(|| arguments.run.clone());
    if !out.is_dir() {
        return Err(input(format!("--out {}: must be a folder that exists", out.display())));
    }
    let model = run.model()?;
    let explanation = of(&run, &model, arguments.rows, arguments.repeats)?;
    let bytes = serde_json::to_string_pretty(&explanation)?;
    write(&out.join(FILE), format!("{bytes}\n").as_bytes())?;
    write(&out.join(PICTURE), picture(&explanation).as_bytes())?;
    Ok(format!("{}\nwritten: {} and {}\n", text(&explanation), out.join(FILE).display(), PICTURE))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fet_files::write(path, bytes).map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
}

/// The test rows of a run, and what they are.
struct Tested {
    table: PartyTable,
    truth: Vec<f64>,
}

fn tested(run: &FinishedRun, rows: usize) -> anyhow::Result<Tested> {
    let experiment = &run.experiment;
    let data = read(experiment, &data_folders(experiment)).map_err(input)?;
    let (primary, _) = divided(experiment, data).map_err(input)?;
    let split = schedule::split(&primary.parts, primary.table.rows(), experiment.seed).map_err(input)?;
    let mut test = split.test;
    if rows > 0 {
        test.truncate(rows);
    }
    if test.len() < 2 {
        let problem = format!("at least 2 test rows are shuffled; there are {}", test.len());
        return Err(input(format!("--rows {rows}: {problem} (0 takes all)")));
    }
    let table = PartyTable {
        keys: primary.table.keys.select_rows(&test),
        features: primary.table.features.select_rows(&test),
        ..primary.table
    };
    Ok(Tested { truth: test.iter().map(|&row| primary.labels[row]).collect(), table })
}

fn of(run: &FinishedRun, model: &SavedModel, rows: usize, repeats: usize) -> anyhow::Result<Explanation> {
    let metric = run.report.metric;
    let tested = tested(run, rows)?;
    let files = Provenance::of(&run.experiment, &data_folders(&run.experiment)).map_err(input)?.files;
    if files != run.report.data.files {
        return Err(input(format!(
            "{}: the data files are not as they were when the run read them, so that its test rows cannot be told from those it \
             was trained on; put them back, or run anew",
            run.folder.display()
        )));
    }
    let mut served = Served::new(run, model)?;
    served.warnings.iter().for_each(|warning| fet_files::note!("warning: {warning}"));
    let new = served.trainer.link_new(tested.table.clone()).map_err(input)?;
    let here = new.parties();
    let objective = model.objective();
    let score = |outputs: &[f32]| -> anyhow::Result<f64> {
        let values = objective.predictions(outputs);
        let scored = Predictions::new(objective.scored(), &tested.truth, &values)
            .map_err(|error| error.to_string())
            .and_then(|rows| rows.score(metric).map_err(|error| error.to_string()));
        scored.map_err(|error| {
            input(format!(
                "{} is not defined on these {} test rows ({error}): take more of them (--rows 0 takes all), or run with another \
                 `scores.metric`",
                metric.title(),
                tested.truth.len()
            ))
        })
    };
    let value = |served: &mut Served, new: &NewRecords, parties: &[usize]| -> anyhow::Result<f64> {
        score(served.trainer.outputs(new, parties)?.values())
    };
    let with_all = value(&mut served, &new, &here)?;
    let seed = run.experiment.seed;
    let mut columns = Vec::new();
    let own = &tested.table.features;
    // What the primary links by is made of its columns then: a shuffled one changes the links.
    let refines = model.preparing().refined.is_some();
    for at in 0..own.columns() {
        let mut rng = stream(seed, 0, Purpose::Bootstrap, 1 + at as u64);
        let shuffled = |order: &[usize]| -> Result<f64, InputError> {
            let features = own.shuffled(at, order);
            let new = if refines {
                let table = PartyTable { features, ..tested.table.clone() };
                served.trainer.link_new(table).map_err(said)?
            } else {
                new.with_features(features).map_err(said)?
            };
            value(&mut served, &new, &here).map_err(said)
        };
        let found = permutation_importance(own.rows(), repeats, metric.direction(), shuffled, &mut rng)?;
        columns.push(ColumnImportance {
            party: tested.table.name.clone(),
            column: own.name(at),
            importance: found,
        });
    }
    if refines {
        served.trainer.link_new(tested.table.clone()).map_err(input)?;
    }
    let tables = if here.is_empty() { Vec::new() } else { served.secondaries()? };
    for &party in &here {
        let table = &tables[party];
        // One record cannot be shuffled.
        let shuffles = table.features.rows() > 1;
        for at in (0..table.features.columns()).filter(|_| shuffles) {
            let mut rng = stream(seed, party + 1, Purpose::Bootstrap, 1 + at as u64);
            let shuffled = |order: &[usize]| -> Result<f64, InputError> {
                let other = table.features.shuffled(at, order);
                served.parties[party].look().replace_features(other).map_err(said)?;
                value(&mut served, &new, &here).map_err(said)
            };
            let rows = table.features.rows();
            let found = permutation_importance(rows, repeats, metric.direction(), shuffled, &mut rng)?;
            served.parties[party].look().replace_features(table.features.clone())?;
            columns.push(ColumnImportance {
                party: table.name.clone(),
                column: table.features.name(at),
                importance: found,
            });
        }
    }
    columns.sort_by(|a, b| b.importance.mean.total_cmp(&a.importance.mean));
    let parties = if here.is_empty() {
        None
    } else {
        let mut of = |coalition: &[bool]| -> Result<f64, InputError> {
            let parties: Vec<usize> =
                here.iter().zip(coalition).filter(|(_, is_in)| **is_in).map(|(party, _)| *party).collect();
            // Worse is less, whatever the metric.
            Ok(metric.direction().gain(value(&mut served, &new, &parties).map_err(said)?, 0.0))
        };
        let mut rng = stream(seed, 0, Purpose::Bootstrap, 0);
        let found = shapley(here.len(), PAIRS, &mut of, &mut rng)?;
        let mut left_out = Vec::with_capacity(here.len());
        for player in 0..here.len() {
            let mut coalition = vec![true; here.len()];
            coalition[player] = false;
            left_out.push(found.all - of(&coalition)?);
        }
        let names = here.iter().map(|&party| tables[party].name.clone()).collect();
        Some(Parties { names, left_out, shapley: found })
    };
    Ok(Explanation { metric, rows: tested.truth.len(), with_all, repeats, columns, parties })
}

/// An error as the functions of scores take it.
fn said(error: impl Into<anyhow::Error>) -> InputError {
    InputError(format!("{:#}", error.into()))
}

/// For people.
fn text(found: &Explanation) -> String {
    let Explanation { metric, rows, with_all, columns, parties, repeats } = found;
    let mut out = format!("{} on {rows} test rows\n", metric.phrase(*with_all));
    if let Some(Parties { names, left_out, shapley }) = parties {
        let _ = writeln!(
            out,
            "\nWhat each party adds: by how much {} is better with it (its Shapley value), and worse when it alone is left out",
            metric.title()
        );
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for ((name, value), lost) in names.iter().zip(&shapley.values).zip(left_out) {
            let _ =
                writeln!(out, "  {name:<width$}  {:>10}  {:>10}", metric.show(*value), metric.show(*lost));
        }
        if let Some(errors) = &shapley.errors {
            let largest = errors.iter().copied().fold(0.0, f64::max);
            let _ = writeln!(
                out,
                "  sampled from {} orders; standard error at most {}",
                2 * PAIRS,
                metric.show(largest)
            );
        }
    }
    let _ = writeln!(
        out,
        "\nWhat each column adds: how much worse {} gets when it is shuffled ({})",
        metric.name(),
        if *repeats > 1 {
            format!("mean and deviation of {repeats} shuffles")
        } else {
            "one shuffle".to_string()
        }
    );
    let label = |column: &ColumnImportance| format!("{}: {}", column.party, column.column);
    let shown = columns.iter().take(20);
    let width = shown.clone().map(|column| label(column).chars().count()).max().unwrap_or(0).min(60);
    for column in shown {
        let Importance { mean, deviation, .. } = &column.importance;
        let _ = writeln!(
            out,
            "  {:<width$}  {:>10}{}",
            label(column),
            metric.show(*mean),
            // One shuffle has none.
            if *repeats > 1 { format!(" ± {}", metric.show(*deviation)) } else { String::new() }
        );
    }
    if columns.len() > 20 {
        let _ = writeln!(out, "  ... and {} more in {FILE}", columns.len() - 20);
    }
    out
}

/// The most important columns as bars, and what parties add.
fn picture(found: &Explanation) -> String {
    let Explanation { metric, columns, parties, .. } = found;
    let names = parties.as_ref().map_or(0, |parties| parties.names.len());
    let mut bars: Vec<(String, f64, f64)> = Vec::new();
    if let Some(parties) = parties {
        for (at, (name, value)) in parties.names.iter().zip(&parties.shapley.values).enumerate() {
            let error = parties.shapley.errors.as_ref().map_or(0.0, |errors| errors[at]);
            bars.push((format!("party {name}"), *value, error));
        }
    }
    for column in columns.iter().take(15) {
        let Importance { mean, deviation, .. } = column.importance;
        bars.push((format!("{}: {}", column.party, column.column), mean, deviation));
    }
    let series: Vec<Series> = bars
        .into_iter()
        .enumerate()
        .map(|(at, (name, value, error))| Series {
            // Parties in one colour, columns in another.
            number: usize::from(at >= names),
            marks: vec![Mark {
                mean: metric.scaled(value),
                half_width: Some(metric.scaled(error)),
                title: format!("{name}: {}", metric.show(value)),
                ..Mark::default()
            }],
            name,
            ..Series::default()
        })
        .collect();
    let x = format!("what is lost without it: {}", metric.title());
    let title = format!("What parties and columns add: {metric}");
    // A row of dots takes 34, the scale below them 58.
    let size = Size { width: 940.0, height: 34.0 * series.len() as f64 + 58.0, names: 320.0 };
    let chart = fet_chart::dots(size, &title, &x, &series, Some(0.0));
    let caption =
        "Of a party its Shapley value; of a column the mean and the deviation of its shuffles.".to_string();
    let panels = vec![Panel { title: title.clone(), size, chart }];
    Picture { title, panels, columns: 1, legend: Vec::new(), caption }.svg()
}
