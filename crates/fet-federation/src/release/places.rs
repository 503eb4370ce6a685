//! The primary's places for releases that follow from its keys and labels.

use std::collections::HashMap;

use fet_core::data::{DataError, Keys, PartyTable, Task, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::linker::{self, Linker};
use fet_core::registry::Violation;
use fet_core::release::{PlaceNeeds, Places};

use crate::data;
use crate::federation::PartyIndex;
use crate::schedule::split;
use crate::secondary::linking_seed;
use crate::trainer::RunError;

/// The primary's half of all places: keys and labels, without the offers of a secondary.
pub(crate) struct OwnPlaces {
    keys: Keys,
    digests: Vec<i64>,
    labels: Vec<Option<usize>>,
    symbols: usize,
    linker: Box<dyn Linker>,
    seed: u64,
}

impl OwnPlaces {
    /// Returns the places of the primary's records. Labels of validation and test rows stay with the primary.
    ///
    /// # Errors
    /// The linker does not compare a record with the places alone, or the labels do not fit.
    pub(crate) fn new(
        experiment: &Experiment,
        data: &VerticalData,
        needs: PlaceNeeds,
    ) -> Result<Self, RunError> {
        let linker = experiment.linker.build(&())?;
        let about = linker.about();
        if !(about.independent && about.in_the_clear) || about.by_position {
            let rule = "must link each record without any other record and with plain keys, as \"nearest\" does, for a release \
                        that follows from the primary's keys";
            return Err(Violation::new("linker.kind", rule, format!("{:?}", experiment.linker.kind())).into());
        }
        if about.neighbours != 1 {
            let rule = "must be 1 for a release that follows from the primary's keys: each record belongs to one row";
            return Err(Violation::new("linker.neighbours", rule, about.neighbours).into());
        }
        let rows = data.labels.len();
        let training = split(&data::parts_of(experiment, data)?, rows, experiment.seed)?.train;
        let (bins, symbols) = match data.task {
            Task::Regression => bins_of(&data.labels, &training, needs.bins)?,
            _ => (data.labels.iter().map(|&label| label as usize).collect(), data.classes),
        };
        let of_rows = data.primary.keys.digests();
        let mut numbers: HashMap<i64, usize> = HashMap::new();
        let mut first: Vec<usize> = Vec::new();
        for (row, digest) in of_rows.iter().enumerate() {
            numbers.entry(*digest).or_insert_with(|| {
                first.push(row);
                first.len() - 1
            });
        }
        let mut labels = vec![None; first.len()];
        for row in training {
            labels[numbers[&of_rows[row]]].get_or_insert(bins[row]);
        }
        Ok(Self {
            digests: first.iter().map(|&row| of_rows[row]).collect(),
            keys: data.primary.keys.select_rows(&first),
            labels,
            symbols,
            linker,
            seed: experiment.seed,
        })
    }

    /// Returns the places with the offers of a secondary's records.
    ///
    /// # Errors
    /// The keys cannot be linked.
    pub(crate) fn offered(&self, table: &PartyTable, party: PartyIndex) -> Result<Places, RunError> {
        let seed = linking_seed(self.seed, party);
        let links = linker::link(self.linker.as_ref(), &table.keys, &self.keys, seed, &|_| ())
            .map_err(|error| DataError::new(format!("keys of {}", table.name), error))?;
        let nearest = |row: usize| links.row(row)[0] as usize;
        Ok(Places {
            keys: self.digests.clone(),
            labels: self.labels.clone(),
            symbols: self.symbols,
            offers: (0..links.rows()).map(nearest).collect(),
        })
    }
}

/// Returns the bin of each label of a regression, and the number of bins. The training rows are in bins of equal numbers,
/// except for equal labels.
fn bins_of(labels: &[f64], training: &[usize], bins: usize) -> Result<(Vec<usize>, usize), DataError> {
    let mut known: Vec<f64> = training.iter().map(|&row| labels[row]).collect();
    known.sort_by(f64::total_cmp);
    let mut edges: Vec<f64> =
        (1..bins).filter_map(|bin| known.get(bin * known.len() / bins).copied()).collect();
    edges.dedup();
    // A bin below the smallest label would be empty.
    edges.retain(|edge| known.first().is_some_and(|least| edge > least));
    if edges.is_empty() {
        let problem = "must have at least two different values in the training rows";
        return Err(DataError::new("labels", problem));
    }
    let bin = |&label: &f64| edges.partition_point(|edge| *edge <= label);
    Ok((labels.iter().map(bin).collect(), edges.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_equal_numbers_of_training_labels() {
        let labels: Vec<f64> = (0..110).map(|row| f64::from((row * 37) % 110)).collect();
        // Labels of 100 and more are in no training row.
        let training: Vec<usize> = (0..110).filter(|&row| labels[row] < 100.0).collect();
        let (found, bins) = bins_of(&labels, &training, 4).expect("different labels");
        assert_eq!(bins, 4);
        for (label, bin) in labels.iter().zip(found) {
            assert_eq!(bin, ((label / 25.0) as usize).min(3), "{label}");
        }
        // Equal labels are one bin.
        let (found, bins) = bins_of(&[1.0, 1.0, 1.0, 1.0, 2.0, 3.0], &[0, 1, 2, 3, 4, 5], 6).expect("three");
        assert_eq!((found, bins), (vec![0, 0, 0, 0, 1, 2], 3));
        assert!(bins_of(&[1.0, 1.0], &[0, 1], 8).is_err());
    }
}
