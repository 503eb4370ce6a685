//! The schedule: the rows and the parties that take part in each round.
//!
//! It is a pure function of the common settings, the method's plan, the split of the primary's records and
//! the number of parties. The primary and every secondary therefore compute the same schedule without
//! messages.

mod split;

use fet_core::experiment::{Batches, NeighboursShown, TrainSettings};
use fet_core::message::Round;
use fet_core::method::{AtOnce, Plan};
use fet_core::privacy::{Randomness, Releases};
use fet_core::rng::{Purpose, stream};
use rand::RngExt;
use rand::seq::{SliceRandom, index};

pub use split::{Split, SplitData, parts, split};

/// The rows and the parties that take part in each round.
#[derive(Debug, Clone)]
pub struct Schedule {
    seed: u64,
    settings: TrainSettings,
    split: Split,
    parties: usize,
    party_dropout: f64,
    at_once: Option<AtOnce>,
}

/// The rows of each training step of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochBatches {
    /// Rows of the first steps; later steps repeat them in this order.
    distinct: Vec<Vec<usize>>,
    steps: usize,
}

impl EpochBatches {
    /// Returns the rows of a step, from 0.
    pub fn get(&self, step: usize) -> Option<&[usize]> {
        (step < self.steps).then(|| self.distinct[step % self.distinct.len()].as_slice())
    }

    /// Returns the rows of every step.
    pub fn iter(&self) -> impl Iterator<Item = &[usize]> {
        self.distinct.iter().cycle().map(Vec::as_slice).take(self.steps)
    }
}

/// Rows that are evaluated after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The validation rows, which select the epoch.
    Validation,
    /// The test rows, which are reported.
    Test,
}

impl Schedule {
    /// Makes the schedule of a run of `parties` secondaries over the records of `split`.
    pub fn new(seed: u64, settings: &TrainSettings, plan: &Plan, split: Split, parties: usize) -> Self {
        Self {
            seed,
            settings: settings.clone(),
            split,
            parties,
            party_dropout: plan.party_dropout,
            at_once: plan.at_once,
        }
    }

    /// Returns the training, validation and test rows.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Returns the epochs and steps of a method that takes all training rows at once.
    pub fn at_once(&self) -> Option<AtOnce> {
        self.at_once
    }

    /// Returns the number of epochs.
    pub fn epochs(&self) -> usize {
        self.at_once.map_or(self.settings.epochs, |at_once| at_once.epochs)
    }

    /// Returns the number of training steps of an epoch.
    pub fn steps(&self) -> usize {
        steps(&self.settings, self.at_once, self.split.train.len())
    }

    /// Returns the maximum number of rows of a batch in evaluations and predictions.
    pub fn evaluation_batch_size(&self) -> usize {
        self.settings.evaluation_batch_size
    }

    /// Returns the round of step `step` of `epoch`, both from 0.
    pub fn training(&self, epoch: usize, step: usize) -> Round {
        Round::Train { step: (epoch * self.steps() + step) as u64 }
    }

    /// Returns the rows of each training step of an epoch, from 0.
    pub fn batches(&self, epoch: usize) -> EpochBatches {
        let distinct = self.distinct_batches(epoch);
        let steps = self.at_once.map_or(distinct.len(), |at_once| at_once.steps);
        EpochBatches { distinct, steps }
    }

    fn distinct_batches(&self, epoch: usize) -> Vec<Vec<usize>> {
        let mut rows = self.split.train.clone();
        // A method that takes all rows at once sees them in one order.
        let epoch = if self.at_once.is_some() { 0 } else { epoch };
        let mut rng = stream(self.seed, 0, Purpose::Batches, epoch as u64);
        if self.at_once.is_some() {
            rows.shuffle(&mut rng);
            return vec![rows];
        }
        let size = self.settings.batch_size;
        match self.settings.batches {
            Batches::Shuffled => {
                rows.shuffle(&mut rng);
                rows.chunks(size).map(<[usize]>::to_vec).collect()
            }
            Batches::Poisson => {
                let rate = (size as f64 / rows.len() as f64).min(1.0);
                let draw = |_| rows.iter().copied().filter(|_| rng.random::<f64>() < rate).collect();
                (0..self.steps()).map(draw).collect()
            }
        }
    }

    /// Returns the ascending places of a row's list of `neighbours` neighbours that a round sees, or `None`
    /// if the round sees the whole list. The places are equal for all rows and for all parties with lists of
    /// this length.
    pub fn shown(&self, round: Round, neighbours: usize) -> Option<Vec<usize>> {
        let (Round::Train { step }, settings) = (round, &self.settings) else { return None };
        let count = settings.neighbours_per_step;
        // The small term keeps a product that is a whole number in decimals from being rounded up because of
        // its last bit.
        let epochs = (settings.neighbours_until * self.epochs() as f64 - 1e-9).ceil() as u64;
        if count == 0 || count >= neighbours || step / self.steps().max(1) as u64 >= epochs {
            return None;
        }
        Some(match settings.neighbours_shown {
            NeighboursShown::Nearest => (0..count).collect(),
            NeighboursShown::Random => {
                let mut rng = stream(self.seed, 0, Purpose::Shown, step);
                let others = index::sample(&mut rng, neighbours - 1, count - 1).into_iter();
                let mut places: Vec<usize> =
                    std::iter::once(0).chain(others.map(|other| other + 1)).collect();
                places.sort_unstable();
                places
            }
        })
    }

    /// Returns the batches of a split's rows for the evaluation after `epoch`, from 0.
    pub fn evaluation(&self, part: Part, epoch: usize) -> Vec<(Round, Vec<usize>)> {
        let (rows, epoch) = (self.rows_of(part), epoch as u32);
        let round = |batch: usize| match part {
            Part::Validation => Round::Validation { epoch, batch: batch as u32 },
            Part::Test => Round::Test { epoch, batch: batch as u32 },
        };
        let batches = rows.chunks(self.settings.evaluation_batch_size).enumerate();
        batches.map(|(batch, rows)| (round(batch), rows.to_vec())).collect()
    }

    /// Returns the rows of one batch of an evaluation, from 0; they are equal after every epoch.
    pub fn evaluated(&self, part: Part, batch: usize) -> Option<&[usize]> {
        self.rows_of(part).chunks(self.settings.evaluation_batch_size).nth(batch)
    }

    /// Returns the rows of one portion of the single release, from 0.
    pub fn portion(&self, batch: usize) -> Option<std::ops::Range<usize>> {
        let (size, rows) = (self.settings.evaluation_batch_size, self.split.rows());
        let start = batch.checked_mul(size).filter(|&start| start < rows)?;
        Some(start..rows.min(start + size))
    }

    /// Returns the number of batches of an evaluation of the test rows.
    pub fn test_batches(&self) -> usize {
        self.split.test.len().div_ceil(self.settings.evaluation_batch_size)
    }

    /// Returns the batches that release every row once, if secondaries are frozen.
    pub fn portions(&self) -> Vec<(Round, Vec<usize>)> {
        let all: Vec<usize> = (0..self.split.rows()).collect();
        let portions = all.chunks(self.settings.evaluation_batch_size).enumerate();
        portions.map(|(batch, rows)| (Round::Once { batch: batch as u32 }, rows.to_vec())).collect()
    }

    /// Returns the parties that take part in a round, from 0. In a training step all except ⌊r_d·k⌋ parties
    /// drawn at random take part, at least one (paper, 4.4); in other rounds all.
    pub fn active(&self, round: Round) -> Vec<usize> {
        let left = left(self.parties, self.party_dropout);
        let Round::Train { step } = round else { return (0..self.parties).collect() };
        if left == self.parties {
            return (0..self.parties).collect();
        }
        let mut rng = stream(self.seed, 0, Purpose::PartyDropout, step);
        let mut active = index::sample(&mut rng, self.parties, left).into_vec();
        active.sort_unstable();
        active
    }

    fn rows_of(&self, part: Part) -> &[usize] {
        match part {
            Part::Validation => &self.split.validation,
            Part::Test => &self.split.test,
        }
    }
}

/// Returns the number of `parties` that take part in a training step: all except ⌊r_d·k⌋, at least one
/// (paper, 4.4).
fn left(parties: usize, party_dropout: f64) -> usize {
    let dropped = (party_dropout * parties as f64).floor() as usize;
    parties.saturating_sub(dropped).max(1).min(parties)
}

/// Returns the number of training steps of an epoch over this number of training rows.
fn steps(settings: &TrainSettings, at_once: Option<AtOnce>, rows: usize) -> usize {
    at_once.map_or_else(|| rows.div_ceil(settings.batch_size), |at_once| at_once.steps)
}

/// Form of a run's releases.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseForm {
    /// Number of values of a row's block.
    pub block: usize,
    /// True if the primary sees only sums of the parties' blocks.
    pub summed: bool,
}

/// Returns the total releases of a run of `parties` secondaries over the records of `split`.
pub fn releases(
    settings: &TrainSettings,
    plan: &Plan,
    split: &Split,
    parties: usize,
    form: ReleaseForm,
) -> Releases {
    let ReleaseForm { block, summed } = form;
    let [train, validation, test] = [&split.train, &split.validation, &split.test].map(Vec::len);
    // A Poisson batch can hold every row.
    let most = match settings.batches {
        Batches::Shuffled => settings.batch_size.min(train),
        Batches::Poisson => train,
    };
    let batches = |rows: usize| rows.div_ceil(settings.evaluation_batch_size);
    Releases {
        epochs: plan.at_once.map_or(settings.epochs, |at_once| at_once.epochs),
        train_steps: steps(settings, plan.at_once, train),
        evaluation_steps: batches(validation) + batches(test),
        rows: most.max(settings.evaluation_batch_size.min(validation.max(test))),
        all_rows: split.rows(),
        train_active: left(parties, plan.party_dropout),
        active: parties,
        block,
        summed,
        randomness: Randomness::Experiment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::message::Parts;

    fn rows() -> Split {
        split(&Parts::default(), 200, 7).expect("enough rows")
    }

    fn schedule(dropout: f64, batches: Batches) -> Schedule {
        let settings =
            TrainSettings { batch_size: 32, evaluation_batch_size: 16, batches, ..TrainSettings::default() };
        let plan = Plan { party_dropout: dropout, ..Plan::default() };
        Schedule::new(7, &settings, &plan, rows(), 5)
    }

    #[test]
    fn every_training_row_stands_in_one_batch_of_an_epoch_and_every_other_row_in_one_evaluation() {
        let schedule = schedule(0.0, Batches::Shuffled);
        let mut all: Vec<usize> = schedule.batches(3).iter().flatten().copied().collect();
        assert_eq!(schedule.batches(3).iter().count(), schedule.steps());
        assert_eq!(schedule.batches(3).get(schedule.steps()), None);
        for part in [Part::Validation, Part::Test] {
            all.extend(schedule.evaluation(part, 3).into_iter().flat_map(|(_, rows)| rows));
        }
        all.sort_unstable();
        assert_eq!(all, (0..200).collect::<Vec<_>>());
        assert_ne!(schedule.batches(3), schedule.batches(4), "each epoch has its own order");
    }

    #[test]
    fn a_method_of_all_rows_at_once_sees_them_in_one_order() {
        let plan = Plan { at_once: Some(AtOnce { epochs: 20, steps: 3 }), ..Plan::default() };
        let schedule = Schedule::new(7, &TrainSettings::default(), &plan, rows(), 2);
        let batches = schedule.batches(0);
        assert_eq!((schedule.steps(), batches.iter().count()), (3, 3));
        assert_eq!(batches, schedule.batches(1));
        assert_eq!((batches.get(0), batches.get(3)), (batches.get(2), None));
        assert_eq!(batches.get(0).map(<[usize]>::len), Some(rows().train.len()));
    }

    #[test]
    fn a_step_sees_the_nearest_neighbour_and_others_in_the_first_epochs() {
        let with = |shown, until| {
            let settings = TrainSettings {
                epochs: 5,
                batch_size: 32,
                neighbours_per_step: 4,
                neighbours_shown: shown,
                neighbours_until: until,
                ..TrainSettings::default()
            };
            Schedule::new(7, &settings, &Plan::default(), rows(), 2)
        };
        let random = with(NeighboursShown::Random, 0.5);
        let steps = random.steps() as u64;
        let mut counts = [0u32; 10];
        for step in 0..3 * steps {
            let places = random.shown(Round::Train { step }, 10).expect("only some");
            assert!(places.len() == 4 && places[0] == 0 && places.is_sorted_by(|a, b| a < b));
            places.iter().for_each(|&place| counts[place] += 1);
            assert_eq!(random.shown(Round::Train { step }, 4), None, "there are no more");
        }
        assert!(counts[1..].iter().all(|&count| count > 0), "{counts:?}: every place has its turn");
        assert_eq!(with(NeighboursShown::Random, 0.6).shown(Round::Train { step: 3 * steps }, 10), None);
        // Half of five epochs is rounded up to three.
        assert_eq!(random.shown(Round::Train { step: 3 * steps }, 10), None);
        assert_eq!(random.shown(Round::Validation { epoch: 0, batch: 0 }, 10), None);
        let nearest = with(NeighboursShown::Nearest, 1.0);
        assert_eq!(nearest.shown(Round::Train { step: 5 * steps - 1 }, 10), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn parties_drop_out_of_training_alone_and_one_stays() {
        for (rate, left) in [(0.0, 5), (0.39, 4), (0.4, 3), (0.99, 1)] {
            let schedule = schedule(rate, Batches::Poisson);
            for step in 0..20 {
                let active = schedule.active(Round::Train { step });
                assert_eq!(active.len(), left, "{rate}");
                assert!(active.is_sorted() && active.iter().all(|&party| party < 5));
            }
            assert_eq!(schedule.active(Round::Validation { epoch: 0, batch: 0 }).len(), 5);
            let plan = Plan { party_dropout: rate, ..Plan::default() };
            let all = releases(
                &TrainSettings::default(),
                &plan,
                &rows(),
                5,
                ReleaseForm { block: 1, summed: true },
            );
            assert_eq!(all.train_active, left);
        }
    }
}
