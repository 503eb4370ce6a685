//! The canary audit of a release that secondaries make once.
//!
//! A canary is a record of the first secondary with extreme values: far above the ranges of all columns if it is in. If it is
//! out, there is no record (`add-remove`), a record with another key and values far below the ranges (`record`), or a record
//! with the same key and values far below the ranges (`features`). Its keys are those of records that leave the table. The attacker knows all other records, and guesses by the likelihood ratio.

use anyhow::Context;
use fet_core::data::{Column, Columns, Features, Matrix, PartyTable, Values, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::privacy::Neighbouring;
use fet_core::release::{Noiseless, ReleaseRecord, Released, TableRelation};
use fet_core::rng::{OwnSeed, Purpose, stream};
use fet_federation::release_maker::ReleaseMaker;
use fet_io::input::input;
use fet_privacy::audit::one_run::Guesses;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

use super::{Audit, Bounds, ROUNDING, Settings, check, within};

/// Number of canaries that the audit with one canary tries, to find the one that changes most.
const CANDIDATES: usize = 128;
/// A value that lies outside every range.
const OUTSIDE: f64 = 1e12;

/// The releases that an attacker sees of a table: one, except in audits of a misbehaving party.
pub type MadeReleases<'a> = &'a dyn Fn(&ReleaseMaker, &PartyTable, &OwnSeed) -> anyhow::Result<Vec<Released>>;

/// Audits the release of the first secondary. `make` makes the releases that the attacker sees.
///
/// # Errors
/// The experiment has no release, its kind cannot be audited, or the table has too few records.
pub fn audit_releases(
    experiment: &Experiment,
    data: &VerticalData,
    settings: &Settings,
    make: MadeReleases<'_>,
) -> anyhow::Result<Audit> {
    check(settings)?;
    let &Settings { canaries, runs, alpha } = settings;
    let maker = ReleaseMaker::new(experiment, data, 0).map_err(input)?;
    let table = data.secondaries.first().context("a release has a secondary")?;
    let seed = |run: u64| {
        let mut secret = [0; 32];
        stream(experiment.seed, 1, Purpose::Noise, run).fill_bytes(&mut secret);
        OwnSeed::repeating(secret)
    };
    let claim = maker.account(&maker.make(table, &seed(u64::MAX)).map_err(input)?);
    let game = |count, first| Game::new(&maker, table, claim.neighbouring, (count, first), experiment.seed);
    // The guarantee holds for the record that changes most, so that the audit looks for it.
    let mut single = game(1, 0)?;
    for first in 1..CANDIDATES.min(table.keys.rows() / 2) {
        let other = game(1, first)?;
        if other.difference() > single.difference() {
            single = other;
        }
    }
    if single.difference() == 0.0 {
        return Err(input(format!(
            "`release`: no record of {} changes its release, so that there is nothing to audit: it is the control \
             (`release.noise_only`), or each of the primary's keys has several records",
            table.name
        )));
    }
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for run in 0..runs as u64 {
        let inside = run % 2 == 1;
        let released = make(&maker, &single.table(&[inside]), &seed(run))?;
        let score = single.scores(&released)[0];
        if inside { with.push(score) } else { without.push(score) }
    }
    let many = game(canaries, 0)?;
    let mut coins = stream(experiment.seed, 0, Purpose::Sampling, 1);
    let inside: Vec<bool> = (0..canaries).map(|_| coins.random()).collect();
    let released = make(&maker, &many.table(&inside), &seed(u64::MAX >> 1))?;
    let guesses = Guesses::of_extremes(&many.scores(&released), &inside, canaries / 4);
    Ok(judge(&claim, (runs, canaries, alpha), [&with, &without], (single.distance(), guesses)))
}

/// A table with canaries.
struct Game<'a> {
    table: &'a PartyTable,
    relation: TableRelation,
    /// Records whose keys each canary has: if it is out, and if it is in.
    places: Vec<[usize; 2]>,
    /// Records that stay in the table with and without canaries.
    others: Vec<usize>,
    /// The release without noise without canaries, and with each canary alone.
    without: Noiseless,
    with: Vec<Noiseless>,
}

impl<'a> Game<'a> {
    fn new(
        maker: &ReleaseMaker,
        table: &'a PartyTable,
        relation: TableRelation,
        (canaries, first): (usize, usize),
        seed: u64,
    ) -> anyhow::Result<Self> {
        let rows = table.keys.rows();
        if !(1..=rows / 4).contains(&canaries) {
            return Err(input(format!(
                "`--canaries` must be at most {}, a quarter of the {rows} records of {}; it is {canaries}",
                rows / 4,
                table.name
            )));
        }
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut stream(seed, 0, Purpose::Sampling, 0));
        order.rotate_left(2 * first);
        let places = order.chunks_exact(2).take(canaries).map(|pair| [pair[0], pair[1]]).collect();
        let mut others = order[2 * canaries..].to_vec();
        others.sort_unstable();
        let mut game = Self { table, relation, places, others, without: Noiseless::NONE, with: Vec::new() };
        let noiseless = |inside: &[bool]| -> anyhow::Result<Noiseless> {
            let found = maker.noiseless(&game.table(inside)).map_err(input)?;
            found.ok_or_else(|| input("`release.kind`: this kind of release cannot be audited"))
        };
        let nobody = vec![false; canaries];
        let without = noiseless(&nobody)?;
        let only = |canary: usize| (0..canaries).map(|other| other == canary).collect::<Vec<bool>>();
        let with = (0..canaries).map(|canary| noiseless(&only(canary))).collect::<anyhow::Result<_>>()?;
        (game.without, game.with) = (without, with);
        Ok(game)
    }

    /// Returns the party's table with the canaries that are `inside`.
    fn table(&self, inside: &[bool]) -> PartyTable {
        let mut rows = self.others.clone();
        let mut extremes = Vec::new();
        for (&[left, joined], &inside) in self.places.iter().zip(inside) {
            let (row, extreme) = match (self.relation, inside) {
                (TableRelation::AddRemove, false) => continue,
                (TableRelation::Record, false) => (left, -OUTSIDE),
                (TableRelation::Features, false) => (joined, -OUTSIDE),
                (_, true) => (joined, OUTSIDE),
            };
            rows.push(row);
            extremes.push(extreme);
        }
        let first = self.others.len();
        PartyTable {
            name: self.table.name.clone(),
            keys: self.table.keys.select_rows(&rows),
            features: with_extremes(self.table.features.select_rows(&rows), first, &extremes),
            bounds: self.table.bounds.clone(),
        }
    }

    /// Returns the attacker's log-likelihood ratio for each canary.
    fn scores(&self, released: &[Released]) -> Vec<f64> {
        let ratio = |with: &Noiseless| released.iter().map(|one| with.ratio(&self.without, one)).sum();
        self.with.iter().map(ratio).collect()
    }

    /// Returns how much the first canary changes.
    fn difference(&self) -> f64 {
        self.with.first().map_or(0.0, |with| with.difference(&self.without))
    }

    /// Returns the largest distance that a canary moves the sums, in standard deviations of the noise.
    fn distance(&self) -> Option<f64> {
        self.with.iter().filter_map(|with| with.distance(&self.without)).reduce(f64::max)
    }
}

/// Returns features whose numbers have these extremes in the records from `first` on.
fn with_extremes(mut features: Features, first: usize, extremes: &[f64]) -> Features {
    match &mut features {
        Features::Columns(Columns { table, .. }) => {
            for Column { values, .. } in &mut table.columns {
                if let Values::Number(values) = values {
                    values[first..].copy_from_slice(extremes);
                }
            }
        }
        Features::Numbers(numbers) => {
            let columns = numbers.columns();
            let mut values = numbers.values().to_vec();
            for (row, &extreme) in extremes.iter().enumerate() {
                values[(first + row) * columns..][..columns].fill(extreme as f32);
            }
            *numbers = Matrix::new(columns, values);
        }
    }
    features
}

fn judge(
    claim: &ReleaseRecord,
    (runs, canaries, alpha): (usize, usize, f64),
    [with, without]: [&[f64]; 2],
    (moved, guesses): (Option<f64>, Guesses),
) -> Audit {
    let party = &claim.parties[0];
    let delta = claim.delta;
    let bounds = Bounds::new([with, without], guesses, [delta, alpha], moved.is_some());
    let accounted = moved.map(|_| 1.0 / party.noise_multiplier);
    let mut why = bounds.above(party.epsilon, alpha);
    if let Some((moved, accounted)) = moved.zip(accounted)
        && !within(moved, accounted * (1.0 + ROUNDING))
    {
        why.push(format!("a canary moves the release by {moved:.4}; the account covers {accounted:.4}"));
    }
    Audit {
        mechanism: claim.kind.clone(),
        neighbouring: match claim.neighbouring {
            TableRelation::AddRemove => Some(Neighbouring::AddRemove),
            TableRelation::Record => Some(Neighbouring::Record),
            TableRelation::Features => None,
        },
        learning: None,
        delta,
        epsilon: party.epsilon,
        alpha,
        runs,
        canaries,
        many_runs: bounds.many_runs,
        many_runs_gaussian: bounds.gaussian,
        one_run: bounds.one_run,
        guesses: guesses.made,
        right: guesses.right,
        moved: moved.unwrap_or(0.0),
        accounted,
        refuted: !why.is_empty(),
        why,
    }
}
