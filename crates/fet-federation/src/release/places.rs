//! The primary's places for releases that follow from its keys and labels.

use std::collections::HashMap;

use fet_core::data::{DataError, Keys, PartyTable, Task, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::linker::{self, Linker};
use fet_core::registry::Violation;
use fet_core::release::{PlaceNeeds, Places};
use fet_core::rng::{OwnSeed, Purpose};
use fet_privacy::labels::RandomisedResponse;

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
        own: &OwnSeed,
    ) -> Result<Self, RunError> {
        let linker = experiment.linker.build(&())?;
        let about = linker.about();
        if !(about.independent && about.in_the_clear) || about.by_position {
            let rule = "must link each record without any other record and with plain keys, as \"nearest\" does, for a release \
                        that follows from the primary's keys";
            return Err(Violation::new("linker.kind", rule, format!("{:?}", experiment.linker.kind())).into());
        }
        let rows = data.labels.len();
        let training = split(&data::parts_of(experiment, data)?, rows, experiment.seed)?.train;
        let (bins, symbols) = bins_of(data, &training, needs.bins)?;
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
        if needs.label_epsilon > 0.0 {
            let response = RandomisedResponse::uniform(needs.label_epsilon, symbols)
                .map_err(|error| DataError::new("`release.label_epsilon`", error))?;
            let mut rng = own.stream(Purpose::Labels, 1);
            for label in labels.iter_mut().flatten() {
                *label = response.answer(*label, &mut rng);
            }
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

/// Returns the class of each row, or the bin of its label, and their number.
fn bins_of(data: &VerticalData, training: &[usize], bins: usize) -> Result<(Vec<usize>, usize), DataError> {
    if data.task != Task::Regression {
        return Ok((data.labels.iter().map(|&label| label as usize).collect(), data.classes));
    }
    let mut known: Vec<f64> = training.iter().map(|&row| data.labels[row]).collect();
    known.sort_by(f64::total_cmp);
    let mut edges: Vec<f64> =
        (1..bins).filter_map(|bin| known.get(bin * known.len() / bins).copied()).collect();
    edges.dedup();
    // An edge at the smallest label has no row below it.
    edges.retain(|edge| known.first().is_some_and(|least| edge > least));
    if edges.is_empty() {
        let problem = "must have at least two different values in the training rows";
        return Err(DataError::new("labels", problem));
    }
    let bin = |&label: &f64| edges.partition_point(|edge| *edge <= label);
    Ok((data.labels.iter().map(bin).collect(), edges.len() + 1))
}
