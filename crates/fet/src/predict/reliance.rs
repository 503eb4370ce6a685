//! `fet predict --explain`: reliance of each prediction on each party and column.
//!
//! The reliance of a row on a column is its prediction minus the mean of its predictions with drawn values in
//! the column. Values of the primary's columns are those of drawn training rows; values of a secondary's
//! column are those of other records of the same table, by drawn permutations. The reliance on a party
//! replaces all of its columns together. Links and keys do not change, unless the run refines keys by columns.
//!
//! The draws are the same for all rows, so the reliance of a row does not depend on other rows of the file.

use fet_core::data::{Column, Features, PartyTable, Task};
use fet_core::objective::Objective;
use fet_core::rng::{Purpose, stream};
use fet_federation::data::{divided, read};
use fet_federation::release;
use fet_federation::schedule;
use fet_federation::trainer::{NewRecords, SavedModel};
use fet_io::input::input;
use rand::RngExt;
use rand::seq::SliceRandom;

use super::Served;
use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::predictions::number;
use crate::provenance::Provenance;

/// Number of drawn values in place of each value.
const DRAWS: usize = 20;

/// Reliance of rows on parties and columns.
pub(super) struct RowReliance {
    /// Explained number of each row: the prediction of a regression, the probability of class 1 of two, or
    /// that of the predicted class of several.
    explained: Vec<f64>,
    /// Name of a party or column, and the reliance of each row.
    found: Vec<(String, Vec<f64>)>,
}

impl RowReliance {
    /// Returns the columns of the output.
    pub(super) fn columns(self) -> Vec<Column> {
        let found = self.found.into_iter().map(|(name, values)| number(&name, values));
        std::iter::once(number("explained", self.explained)).chain(found).collect()
    }
}

/// Predictions with replaced values.
struct Replacer<'a> {
    served: &'a mut Served,
    model: &'a SavedModel,
    /// New records with their links.
    new: &'a NewRecords,
    table: &'a PartyTable,
    /// True if links depend on the primary's columns.
    refines: bool,
    /// Class that is explained, of each row; 0 for a regression or two classes.
    classes: Vec<usize>,
    explained: Vec<f64>,
}

/// Computes the reliance of new records that were linked last. `table` holds the records.
pub(super) fn reliance(
    run: &FinishedRun,
    model: &SavedModel,
    served: &mut Served,
    new: &NewRecords,
    table: &PartyTable,
) -> anyhow::Result<RowReliance> {
    let training = training_rows(run, model)?;
    let objective = model.objective();
    let values = model.scale().predictions(served.predictor.outputs(new, &new.parties())?.values());
    let classes: Vec<usize> = values.chunks_exact(objective.outputs).map(best).collect();
    let explained = picked(objective, &classes, &values);
    let refines = model.preparing().refined.is_some();
    let mut replacer = Replacer { served, model, new, table, refines, classes, explained };
    let mut found = replacer.primary(&training, run.experiment.seed)?;
    for party in new.parties() {
        found.extend(replacer.secondary(party, run.experiment.seed)?);
    }
    if refines {
        replacer.served.predictor.link_new(table.clone()).map_err(input)?;
    }
    Ok(RowReliance { explained: replacer.explained, found })
}

/// Returns the place of the greatest value, the first of several.
fn best(row: &[f64]) -> usize {
    (0..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best })
}

/// Returns the number of each row that is explained.
fn picked(objective: Objective, classes: &[usize], values: &[f64]) -> Vec<f64> {
    let rows = values.chunks_exact(objective.outputs).zip(classes);
    rows.map(|(row, &class)| if objective.task == Task::Multiclass { row[class] } else { row[0] }).collect()
}

/// Returns the primary's features of the training rows.
fn training_rows(run: &FinishedRun, model: &SavedModel) -> anyhow::Result<Features> {
    let experiment = &run.experiment;
    let folders = data_folders(experiment);
    let files = Provenance::of_experiment(experiment, &folders).map_err(input)?.files;
    if files != run.report.data.files {
        return Err(input(format!(
            "--explain: the data files have changed since the run in {}, so its training rows are unknown. Restore the \
             files, or predict without --explain.",
            run.folder.display()
        )));
    }
    let data = read(experiment, &folders).map_err(input)?;
    let data = release::joined(experiment, data, model.released()).map_err(input)?;
    let (primary, _) = divided(experiment, data).map_err(input)?;
    let split = schedule::split(&primary.parts, primary.table.rows(), experiment.seed).map_err(input)?;
    Ok(primary.table.features.select_rows(&split.train))
}

/// Returns `features` with the value of row `from` of `source` in these columns of every row.
fn replaced(features: &Features, columns: &[usize], source: &Features, from: usize) -> Features {
    let mut other = features.clone();
    match (&mut other, source) {
        (Features::Numbers(numbers), Features::Numbers(source)) => {
            let width = numbers.columns();
            for row in numbers.values_mut().chunks_exact_mut(width.max(1)) {
                columns.iter().for_each(|&at| row[at] = source.row(from)[at]);
            }
        }
        (Features::Columns(own), Features::Columns(source)) => {
            let rows = vec![from; own.table.rows];
            for &at in columns {
                let column = &mut own.table.columns[at];
                if let Ok(known) = source.table.column(&column.name) {
                    column.values = known.values.select(&rows);
                }
            }
        }
        // Both are the primary's features, so they have the same form.
        (Features::Numbers(_), Features::Columns(_)) | (Features::Columns(_), Features::Numbers(_)) => {}
    }
    other
}

impl Replacer<'_> {
    /// Returns the explained numbers minus their mean over predictions of `DRAWS` kinds of records.
    fn effect(
        &mut self,
        mut draw: impl FnMut(&mut Self, usize) -> anyhow::Result<NewRecords>,
    ) -> anyhow::Result<Vec<f64>> {
        let mut sums = vec![0.0; self.explained.len()];
        for at in 0..DRAWS {
            let new = draw(self, at)?;
            let outputs = self.served.predictor.outputs(&new, &new.parties())?;
            let values = self.model.scale().predictions(outputs.values());
            let drawn = picked(self.model.objective(), &self.classes, &values);
            sums.iter_mut().zip(drawn).for_each(|(sum, value)| *sum += value / DRAWS as f64);
        }
        Ok(self.explained.iter().zip(sums).map(|(own, mean)| own - mean).collect())
    }

    fn primary(&mut self, training: &Features, seed: u64) -> anyhow::Result<Vec<(String, Vec<f64>)>> {
        let (own, table) = (&self.table.features, self.table);
        let mut rng = stream(seed, 0, Purpose::Bootstrap, 3);
        let drawn: Vec<usize> = (0..DRAWS).map(|_| rng.random_range(0..training.rows().max(1))).collect();
        let mut found = Vec::new();
        let all: Vec<usize> = (0..own.columns()).collect();
        let single = all.iter().map(|at| (format!("{}: {}", table.name, own.name(*at)), vec![*at]));
        for (name, columns) in std::iter::once((table.name.clone(), all.clone())).chain(single) {
            if columns.is_empty() {
                continue;
            }
            let effect = self.effect(|this, at| {
                let features = replaced(own, &columns, training, drawn[at]);
                if this.refines {
                    let table = PartyTable { features, ..table.clone() };
                    return this.served.predictor.link_new(table).map_err(input);
                }
                this.new.with_features(features).map_err(input)
            })?;
            found.push((name, effect));
        }
        Ok(found)
    }

    fn secondary(&mut self, party: usize, seed: u64) -> anyhow::Result<Vec<(String, Vec<f64>)>> {
        if self.refines {
            // The last draw of the primary replaced the links.
            self.served.predictor.link_new(self.table.clone()).map_err(input)?;
        }
        let tables = self.served.secondaries()?;
        let Some(PartyTable { name, features, .. }) = tables.get(party) else { return Ok(Vec::new()) };
        let mut rng = stream(seed, party + 1, Purpose::Bootstrap, 3);
        let orders: Vec<Vec<usize>> = (0..DRAWS)
            .map(|_| {
                let mut order: Vec<usize> = (0..features.rows()).collect();
                order.shuffle(&mut rng);
                order
            })
            .collect();
        let mut found = Vec::new();
        let columns = (0..features.columns()).map(|at| (format!("{name}: {}", features.name(at)), Some(at)));
        for (name, column) in std::iter::once((name.clone(), None)).chain(columns) {
            let effect = self.effect(|this, at| {
                let other = match column {
                    Some(column) => features.shuffled(column, &orders[at]),
                    None => features.select_rows(&orders[at]),
                };
                this.served.parties[party].lock().replace_features(other)?;
                Ok(this.new.clone())
            })?;
            found.push((name, effect));
        }
        self.served.parties[party].lock().replace_features(features.clone())?;
        Ok(found)
    }
}
