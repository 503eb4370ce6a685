//! The primary's places for releases that follow from its keys and labels.

use std::collections::{HashMap, HashSet};

use fet_core::data::{DataError, Keys, PartyTable, Task, VerticalData};
use fet_core::experiment::{CommonSettings, Experiment};
use fet_core::labels::{Exposure, LabelPrivacy};
use fet_core::linker::{self, Linker};
use fet_core::message::ReleasePlaces;
use fet_core::objective::Objective;
use fet_core::registry::{Slot, Violation};
use fet_core::release::{PlaceNeeds, Places};
use fet_core::rng::OwnSeed;

use crate::data;
use crate::federation::PartyIndex;
use crate::label_answers::{LabelAnswers, Replaced, classes_of};
use crate::schedule::split;
use crate::secondary::linking_seed;
use crate::trainer::RunError;

/// The primary's half of all places: keys and labels, without the offers of a secondary.
pub(crate) struct OwnPlaces {
    keys: Keys,
    digests: Vec<i64>,
    labels: Vec<Option<usize>>,
    symbols: usize,
    /// Probability that a label is the true one.
    label_truth: f64,
    /// Guarantee of the labels; `None` for labels without protection, and for places that a primary sent.
    label_privacy: Option<LabelPrivacy>,
    linker: Box<dyn Linker>,
    seed: u64,
}

impl OwnPlaces {
    /// Returns the places of the primary's records. Labels of validation and test rows stay with the primary, and the
    /// protection of the settings replaces the others. `own` is the primary's seed.
    ///
    /// # Errors
    /// The linker does not compare a record with the places alone, or the labels do not fit.
    pub(crate) fn new(
        experiment: &Experiment,
        data: &VerticalData,
        needs: PlaceNeeds,
        own: &OwnSeed,
    ) -> Result<Self, RunError> {
        let linker = checked_linker(&experiment.linker)?;
        let rows = data.labels.len();
        let mut training = split(&data::parts_of(experiment, data)?, rows, experiment.seed)?.train;
        let answers = answers(experiment, data)?;
        let label_truth = answers.as_ref().and_then(|answers| answers.protection().truth()).unwrap_or(1.0);
        let (bins, symbols) = match data.task {
            Task::Regression => bins_of(&data.labels, &training, needs.bins)?,
            _ => {
                let mut labels = data.labels.clone();
                if let Some(answers) = &answers {
                    let replaced = Replaced { records: &training, file_rows: &data.metadata.rows };
                    let mut objective =
                        Objective { task: data.task, outputs: data.classes, minimum: 0.0, range: 1.0 };
                    answers.replace(replaced, &mut labels, &mut objective, own);
                }
                (labels.iter().map(|&label| label as usize).collect(), data.classes)
            }
        };
        let of_rows = data.primary.keys.digests();
        let mut numbers: HashMap<i64, usize> = HashMap::new();
        let mut first: Vec<usize> = Vec::new();
        let mut order: Vec<usize> = (0..rows).collect();
        if !own.is_simulated() {
            // The order of a file that is sorted by label would reveal the labels.
            order.sort_unstable_by_key(|&row| (of_rows[row], row));
        }
        for (row, digest) in order.into_iter().map(|row| (row, &of_rows[row])) {
            numbers.entry(*digest).or_insert_with(|| {
                first.push(row);
                first.len() - 1
            });
        }
        if answers.is_some() {
            // The first row of the file with a key gives its label, so that another seed does not give another answer.
            let file_row = |row: &usize| data.metadata.rows.get(*row).copied().unwrap_or(*row);
            training.sort_unstable_by_key(file_row);
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
            label_truth,
            label_privacy: answers.map(|answers| answers.guarantee()),
            linker,
            seed: experiment.seed,
        })
    }

    /// Reads the places that a primary sent.
    ///
    /// # Errors
    /// The message or the linker does not fit.
    pub(crate) fn received(settings: &CommonSettings, message: ReleasePlaces) -> Result<Self, WrongPlaces> {
        let ReleasePlaces { keys, labels, symbols, label_truth } = message;
        let linker = checked_linker(&settings.linker)?;
        let wrong = |field, rule: String, value| Err(WrongPlaces::Message { field, rule, value });
        if !(2..=MOST_SYMBOLS).contains(&symbols) {
            return wrong("symbols", format!("must be 2 to {MOST_SYMBOLS}"), symbols.to_string());
        }
        if let Keys::Sealed(_) = keys {
            return wrong("keys", "must be numbers or texts".to_string(), "sealed".to_string());
        }
        if symbols as usize > keys.rows().max(2) {
            let rule = format!("must be at most the number of keys ({})", keys.rows());
            return wrong("symbols", rule, symbols.to_string());
        }
        if labels.len() != keys.rows() {
            let rule = format!("must have {} entries, one for each key", keys.rows());
            return wrong("labels", rule, labels.len().to_string());
        }
        if let Some(label) = labels.iter().find(|&&label| label > symbols) {
            return wrong("labels", format!("must be 0 to {symbols}"), label.to_string());
        }
        let guess = 1.0 / f64::from(symbols);
        if !(label_truth > guess && label_truth <= 1.0) {
            let rule = format!("must be above {guess} (a guess of {symbols}) and at most 1");
            return wrong("label_truth", rule, label_truth.to_string());
        }
        let label = |label: u32| (label as usize).checked_sub(1);
        Ok(Self {
            digests: keys.digests(),
            keys,
            labels: labels.into_iter().map(label).collect(),
            symbols: symbols as usize,
            label_truth,
            label_privacy: None,
            linker,
            seed: settings.seed,
        })
    }

    /// Returns the places in the form of a message.
    pub(crate) fn message(&self) -> ReleasePlaces {
        let label = |label: &Option<usize>| label.map_or(0, |label| label as u32 + 1);
        ReleasePlaces {
            keys: self.keys.clone(),
            labels: self.labels.iter().map(label).collect(),
            symbols: self.symbols as u32,
            label_truth: self.label_truth,
        }
    }

    /// Returns the guarantee of the labels; `None` for labels without protection.
    pub(crate) fn label_privacy(&self) -> Option<&LabelPrivacy> {
        self.label_privacy.as_ref()
    }

    /// Returns the number of different keys.
    pub(crate) fn rows(&self) -> usize {
        self.digests.iter().collect::<HashSet<_>>().len()
    }

    /// Returns the number of classes or bins.
    pub(crate) fn symbols(&self) -> usize {
        self.symbols
    }

    /// Returns the places without the offers of a secondary.
    pub(crate) fn without_offers(&self) -> Places {
        let Self { digests, labels, symbols, label_truth, .. } = self;
        Places {
            keys: digests.clone(),
            labels: labels.clone(),
            symbols: *symbols,
            label_truth: *label_truth,
            offers: Vec::new(),
        }
    }

    /// Returns the places with the offers of a secondary's records.
    ///
    /// # Errors
    /// The keys cannot be linked.
    pub(crate) fn offered(&self, table: &PartyTable, party: PartyIndex) -> Result<Places, DataError> {
        let seed = linking_seed(self.seed, party);
        let links = linker::link(self.linker.as_ref(), &table.keys, &self.keys, seed, &|_| ())
            .map_err(|error| DataError::new(format!("keys of {}", table.name), error))?;
        let nearest = |row: usize| links.row(row)[0] as usize;
        Ok(Places { offers: (0..links.rows()).map(nearest).collect(), ..self.without_offers() })
    }
}

/// Largest number of symbols that a message may name.
const MOST_SYMBOLS: u32 = 1 << 10;

/// Reason why a party cannot use the primary's places.
#[derive(Debug)]
pub(crate) enum WrongPlaces {
    /// The message breaks a rule.
    Message {
        /// The field.
        field: &'static str,
        /// The rule.
        rule: String,
        /// Value of the field.
        value: String,
    },
    /// A setting breaks a rule.
    Settings(Violation),
}

impl From<Violation> for WrongPlaces {
    fn from(violation: Violation) -> Self {
        Self::Settings(violation)
    }
}

/// Returns the answers for the labels of training rows; `None` for settings without a protection.
fn answers(experiment: &Experiment, data: &VerticalData) -> Result<Option<LabelAnswers>, RunError> {
    if experiment.labels.build(&())?.is_identity() {
        return Ok(None);
    }
    if data.task == Task::Regression {
        let rule = "must be \"none\" for a regression with this kind of release: the bins of the labels follow from all of them";
        return Err(Violation::new("labels.kind", rule, format!("{:?}", experiment.labels.kind())).into());
    }
    let classes = classes_of(data.task, data.classes);
    let exposure = Exposure {
        task: data.task,
        classes,
        rows: 0,
        times: 0,
        steps_follow_metric: false,
        parties_train: false,
    };
    Ok(Some(LabelAnswers::new(experiment, exposure)?))
}

/// Returns the linker, which must link each record without any other record.
fn checked_linker(settings: &Slot<dyn Linker>) -> Result<Box<dyn Linker>, Violation> {
    let linker = settings.build(&())?;
    let about = linker.about();
    if !(about.independent && about.in_the_clear) || about.by_position {
        let rule = "must link each record without any other record and with plain keys, as \"nearest\" does, for a release \
                    that follows from the primary's keys";
        return Err(Violation::new("linker.kind", rule, format!("{:?}", settings.kind())));
    }
    if about.neighbours != 1 {
        let rule =
            "must be 1 for a release that follows from the primary's keys: each record belongs to one row";
        return Err(Violation::new("linker.neighbours", rule, about.neighbours));
    }
    Ok(linker)
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
