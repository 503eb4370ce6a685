//! `fet explain`: measures how much a finished run's model relies on each party, column and key, on its test
//! rows.
//!
//! The reliance on a column is the permutation loss: the loss of the main metric when the column is shuffled
//! (Breiman 2001). The reliance on a party is the loss of the metric when the sum omits the party.
//! The Shapley value of a party is the mean of that loss over all orders in which parties leave.
//!
//! These figures describe this model. Columns with the same content hide each other, and a model trained
//! without a party would use other columns instead. The explanation therefore shows anchors: the scores of
//! the model with and without parties, of the mean of the training labels, and of a control variant.
//!
//! The command reads all parties' tables, which only a simulation can do.

pub(crate) mod explanation;
pub(crate) mod show;

use std::path::{Path, PathBuf};

use fet_core::data::{Matrix, PartyTable, Task};
use fet_core::rng::{Purpose, stream};
use fet_eval::importance::{Importance, permutation_importance};
use fet_eval::shapley::shapley;
use fet_eval::{Direction, Metric, Predictions};
use fet_federation::data::{divided, read};
use fet_federation::release;
use fet_federation::schedule;
use fet_federation::trainer::{NewRecords, SavedModel};

use self::explanation::{
    Anchors, ColumnImportance, Control, Explanation, FILE, KeysImportance, PAIRS, PartyReliance,
};
use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::folder::PAGE;
use crate::page;
use crate::predict::Served;
use crate::provenance::Provenance;
use fet_io::input::{InputError, input};

/// Picture of an explanation.
const PICTURE: &str = "explanation.svg";
/// Number of the random stream that shuffles keys; the streams of columns count from 1.
const KEYS: u64 = u64::MAX;

/// Maximum number of shuffles of a column.
const MOST_REPEATS: usize = 10_000;

/// Arguments of `fet explain`.
#[derive(Debug, Clone, clap::Args)]
pub struct ExplainArguments {
    /// The folder of a finished run.
    pub run: PathBuf,
    /// Number of test rows, spread evenly over all of them; 0 for all.
    #[arg(long, default_value_t = 1000)]
    pub rows: usize,
    /// Number of shuffles of each column.
    #[arg(long, default_value_t = 5)]
    pub repeats: usize,
    /// Folder of a finished run of the primary alone on the same rows, for example with `method.kind=solo` or
    /// `fet-alone`. The difference between both runs is the gain of federating.
    #[arg(long, value_name = "RUN")]
    pub control: Option<PathBuf>,
    /// Folder for the explanation [default: the folder of the run].
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Explains a run, writes the explanation, and returns the explanation as text.
pub fn explain(arguments: &ExplainArguments) -> anyhow::Result<String> {
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
    let explanation = compute(&run, &model, arguments)?;
    let bytes = serde_json::to_string_pretty(&explanation)?;
    write(&out.join(FILE), format!("{bytes}\n").as_bytes())?;
    write(&out.join(PICTURE), show::picture(&explanation).as_bytes())?;
    let mut written = format!("{} and {PICTURE}", out.join(FILE).display());
    if out.canonicalize().is_ok_and(|out| arguments.run.canonicalize().is_ok_and(|run| run == out)) {
        let page = page::text(&run.experiment, &run.report, Some(&explanation))?;
        write(&out.join(PAGE), page.as_bytes())?;
        written += &format!(", and the reliance in {PAGE}");
    }
    Ok(format!("{}\nwritten: {written}\n", show::text(&explanation)))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fet_io::write(path, bytes).map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
}

/// Test rows of a run, their labels, and a constant prediction for each row.
struct Tested {
    table: PartyTable,
    truth: Vec<f64>,
    /// Mean of the training labels, or the frequency of each class, for every row.
    training_mean: Vec<f64>,
}

fn tested(run: &FinishedRun, model: &SavedModel, rows: usize) -> anyhow::Result<Tested> {
    let experiment = &run.experiment;
    let data = read(experiment, &data_folders(experiment)).map_err(input)?;
    let data = release::joined(experiment, data, model.released()).map_err(input)?;
    let (primary, _) = divided(experiment, data).map_err(input)?;
    let split = schedule::split(&primary.parts, primary.table.rows(), experiment.seed).map_err(input)?;
    let mut test = split.test;
    if (1..test.len()).contains(&rows) {
        // A split by time sorts the test rows, and the first of them are only the earliest.
        test = (0..rows).map(|at| test[at * test.len() / rows]).collect();
    }
    if test.len() < 2 {
        let problem = format!("must give at least 2 test rows; there are {}", test.len());
        return Err(input(format!("--rows {rows}: {problem} (0 for all)")));
    }
    let table = PartyTable {
        keys: primary.table.keys.select_rows(&test),
        features: primary.table.features.select_rows(&test),
        ..primary.table
    };
    let labels = |rows: &[usize]| rows.iter().map(|&row| primary.labels[row]).collect::<Vec<f64>>();
    let trained = labels(&split.train);
    let share = |counts: &dyn Fn(f64) -> f64| {
        trained.iter().map(|&label| counts(label)).sum::<f64>() / trained.len() as f64
    };
    let constant: Vec<f64> = match primary.task {
        Task::Regression | Task::Binary => vec![share(&|label| label)],
        Task::Multiclass => {
            let of = |class: usize| share(&|label| f64::from(u8::from(label == class as f64)));
            (0..primary.classes).map(of).collect()
        }
    };
    Ok(Tested { truth: labels(&test), training_mean: constant.repeat(test.len()), table })
}

/// Computes scores of outputs for test rows.
struct Scorer<'a> {
    metric: Metric,
    model: &'a SavedModel,
    truth: &'a [f64],
}

impl Scorer<'_> {
    /// Returns the score of predictions, or the reason why the metric is undefined.
    fn score(&self, values: &[f64]) -> Result<f64, String> {
        Predictions::new(self.model.objective().scored(), self.truth, values)
            .map_err(|error| error.to_string())
            .and_then(|rows| rows.score(self.metric).map_err(|error| error.to_string()))
    }

    /// Returns the score of a model with these parties.
    fn with(&self, served: &mut Served, new: &NewRecords, parties: &[usize]) -> anyhow::Result<f64> {
        let outputs = served.predictor.outputs(new, parties)?;
        self.score(&self.model.scale().predictions(outputs.values())).map_err(|error| {
            input(format!(
                "{} is undefined on these {} test rows ({error}). Use more rows (--rows 0 for all), or run with \
                 another `scores.metric`.",
                self.metric.title(),
                self.truth.len()
            ))
        })
    }
}

/// Returns the score of a run of the primary alone on the same rows.
fn control(path: &Path, run: &FinishedRun, tested_here: &Tested, rows: usize) -> anyhow::Result<Control> {
    let control = FinishedRun::read(path)?;
    let refuse = |problem: &str| Err(input(format!("--control {}: {problem}", path.display())));
    let method = control.experiment.method.kind().to_string();
    if control.experiment.method.build(&()).map_err(input)?.plan().secondaries {
        return refuse(&format!(
            "must be a run of the primary alone (`method.kind` \"solo\" or \"fet-alone\"); its method is \"{method}\""
        ));
    }
    if control.report.data.split != run.report.data.split
        || control.report.data.files != run.report.data.files
    {
        return refuse("must be a run on the same data files with the same split and seed; they differ");
    }
    let model = control.model()?;
    let Tested { table, truth, .. } = tested(&control, &model, rows)?;
    if truth != tested_here.truth {
        return refuse("must predict the same label; the labels of its test rows differ");
    }
    let mut served = Served::new(&control, &model, &data_folders(&control.experiment))?;
    let new = served.predictor.link_new(table).map_err(input)?;
    let scorer = Scorer { metric: run.report.metric, model: &model, truth: &truth };
    let score = scorer.with(&mut served, &new, &[])?;
    Ok(Control { run: path.display().to_string(), method, score })
}

/// Shuffles columns and keys, and scores each shuffle.
struct Shuffler<'a> {
    scorer: Scorer<'a>,
    served: Served,
    /// Test rows with their links.
    new: NewRecords,
    /// Numbers of the secondaries that the model has, from 0.
    here: Vec<usize>,
    seed: u64,
    repeats: usize,
}

impl Shuffler<'_> {
    fn score(&mut self, new: &NewRecords) -> Result<f64, InputError> {
        self.scorer.with(&mut self.served, new, &self.here).map_err(input_error)
    }

    /// Returns the permutation loss of `rows` records; `purpose` selects the random stream of a party's
    /// shuffles.
    fn loss(
        &mut self,
        rows: usize,
        (party, purpose): (usize, u64),
        mut shuffled: impl FnMut(&mut Self, &[usize]) -> Result<f64, InputError>,
    ) -> anyhow::Result<Importance> {
        let mut rng = stream(self.seed, party, Purpose::Bootstrap, purpose);
        let (repeats, direction) = (self.repeats, self.scorer.metric.direction());
        let score = |order: &[usize]| shuffled(self, order);
        Ok(permutation_importance(rows, repeats, direction, score, &mut rng)?)
    }

    /// Computes the losses of the primary's columns and keys. If `refines` is true, links depend on the
    /// columns, so a shuffled column changes the links.
    fn primary(
        &mut self,
        table: &PartyTable,
        refines: bool,
    ) -> anyhow::Result<(Vec<ColumnImportance>, KeysImportance)> {
        let own = &table.features;
        let mut columns = Vec::new();
        for at in 0..own.columns() {
            let importance = self.loss(own.rows(), (0, 1 + at as u64), |this, order| {
                let features = own.shuffled(at, order);
                let new = if refines {
                    let table = PartyTable { features, ..table.clone() };
                    this.served.predictor.link_new(table).map_err(input_error)?
                } else {
                    this.new.with_features(features).map_err(input_error)?
                };
                this.score(&new)
            })?;
            columns.push(ColumnImportance { party: table.name.clone(), column: own.name(at), importance });
        }
        if refines {
            self.served.predictor.link_new(table.clone()).map_err(input)?;
        }
        let importance = self.loss(table.rows(), (0, KEYS), |this, order| {
            let new = this.new.with_keys_in_order(order);
            this.score(&new)
        })?;
        Ok((columns, KeysImportance { party: table.name.clone(), importance }))
    }

    /// Computes the losses of a secondary's columns and keys; a single record cannot be shuffled.
    fn secondary(
        &mut self,
        party: usize,
        table: &PartyTable,
    ) -> anyhow::Result<(Vec<ColumnImportance>, Option<KeysImportance>)> {
        let (mut columns, name) = (Vec::new(), &table.name);
        let rows = table.rows();
        if rows < 2 {
            return Ok((columns, None));
        }
        let new = self.new.clone();
        for at in 0..table.features.columns() {
            let importance = self.loss(rows, (party + 1, 1 + at as u64), |this, order| {
                let other = table.features.shuffled(at, order);
                this.served.parties[party].lock().replace_features(other).map_err(input_error)?;
                this.score(&new)
            })?;
            self.served.parties[party].lock().replace_features(table.features.clone())?;
            columns.push(ColumnImportance {
                party: name.clone(),
                column: table.features.name(at),
                importance,
            });
        }
        let keys: Matrix<f32> = self.served.parties[party].lock().model_keys()?;
        let importance = self.loss(rows, (party + 1, KEYS), |this, order| {
            this.served.parties[party]
                .lock()
                .replace_model_keys(keys.select_rows(order))
                .map_err(input_error)?;
            this.score(&new)
        })?;
        self.served.parties[party].lock().replace_model_keys(keys)?;
        Ok((columns, Some(KeysImportance { party: name.clone(), importance })))
    }

    /// Measures the reliance on each secondary, from scores of the model without some secondaries.
    fn parties(&mut self, names: Vec<String>) -> anyhow::Result<PartyReliance> {
        let (metric, here, new) = (self.scorer.metric, self.here.clone(), self.new.clone());
        let mut score = |coalition: &[bool]| -> Result<f64, InputError> {
            let parties: Vec<usize> =
                here.iter().zip(coalition).filter(|(_, is_in)| **is_in).map(|(party, _)| *party).collect();
            self.scorer.with(&mut self.served, &new, &parties).map_err(input_error)
        };
        // A gain is positive if the metric improves, for metrics of either direction.
        let mut gain =
            |coalition: &[bool]| Ok::<_, InputError>(metric.direction().gain(score(coalition)?, 0.0));
        let mut rng = stream(self.seed, 0, Purpose::Bootstrap, 0);
        let shapley = shapley(here.len(), PAIRS, &mut gain, &mut rng)?;
        let mut without = Vec::with_capacity(here.len());
        for player in 0..here.len() {
            let mut coalition = vec![true; here.len()];
            coalition[player] = false;
            without.push(score(&coalition)?);
        }
        let lost = |score: &f64| shapley.all - metric.direction().gain(*score, 0.0);
        Ok(PartyReliance { names, reliance: without.iter().map(lost).collect(), without, shapley })
    }
}

fn compute(
    run: &FinishedRun,
    model: &SavedModel,
    arguments: &ExplainArguments,
) -> anyhow::Result<Explanation> {
    let metric = run.report.metric;
    let linker = &run.experiment.linker;
    let uses_parties = run.experiment.method.build(&()).map_err(input)?.plan().secondaries;
    if uses_parties && linker.build(&()).map_err(input)?.about().by_position {
        return Err(input(format!(
            "{}: the linker \"{}\" links by the order of rows, so it cannot link test rows alone. Explain a run with a \
             linker that compares keys.",
            run.folder.display(),
            linker.kind()
        )));
    }
    let tested = tested(run, model, arguments.rows)?;
    let files =
        Provenance::of_experiment(&run.experiment, &data_folders(&run.experiment)).map_err(input)?.files;
    if files != run.report.data.files {
        return Err(input(format!(
            "{}: the data files have changed since the run, so its test rows are unknown. Restore the files, or run \
             again.",
            run.folder.display()
        )));
    }
    let control =
        arguments.control.as_deref().map(|path| control(path, run, &tested, arguments.rows)).transpose()?;
    let mut served = Served::new(run, model, &data_folders(&run.experiment))?;
    served.warnings.iter().for_each(|warning| fet_io::note!("warning: {warning}"));
    let new = served.predictor.link_new(tested.table.clone()).map_err(input)?;
    let here = new.parties();
    let tables = if here.is_empty() { Vec::new() } else { served.secondaries()? };
    let scorer = Scorer { metric, model, truth: &tested.truth };
    let training_mean = scorer.score(&tested.training_mean).ok();
    let with_all = scorer.with(&mut served, &new, &here)?;
    let (seed, repeats) = (run.experiment.seed, arguments.repeats);
    let mut shuffler = Shuffler { scorer, served, new, here, seed, repeats };
    let (mut columns, own_keys) = shuffler.primary(&tested.table, model.preparing().refined.is_some())?;
    let mut keys = vec![own_keys];
    for party in shuffler.here.clone() {
        let (of_party, keys_of_party) = shuffler.secondary(party, &tables[party])?;
        columns.extend(of_party);
        keys.extend(keys_of_party);
    }
    columns.sort_by(|a, b| b.importance.mean.total_cmp(&a.importance.mean));
    let names: Vec<String> = shuffler.here.iter().map(|&party| tables[party].name.clone()).collect();
    // The columns of a party that is left out cannot be replaced where the primary sees raw columns.
    let sees_columns = run.experiment.method.build(&()).map_err(input)?.plan().own_width;
    let parties = if names.is_empty() || sees_columns { None } else { Some(shuffler.parties(names)?) };
    let without_parties = parties.as_ref().map(|parties| match metric.direction() {
        Direction::Maximise => parties.shapley.none,
        Direction::Minimise => -parties.shapley.none,
    });
    let anchors = Anchors { with_all, without_parties, training_mean, control };
    Ok(Explanation { metric, rows: tested.truth.len(), repeats, anchors, columns, keys, parties })
}

/// Converts an error to the type that scoring functions return.
fn input_error(error: impl Into<anyhow::Error>) -> InputError {
    InputError(format!("{:#}", error.into()))
}
