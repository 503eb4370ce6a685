//! Attacks on releases that are made once: membership, attributes from repeated releases, and reconstruction. The attacker
//! knows all other records, and the table's release without noise. docs/results/privacy.md quotes the figures:
//! `cargo test --release -p fet --test suite releases_tell -- --nocapture`.

use std::collections::BTreeSet;

use fet_core::data::{Folders, PartyTable, Values, VerticalData};
use fet_core::experiment::{Experiment, set};
use fet_core::release::{Noiseless, Released};
use fet_core::rng::{OwnSeed, Purpose, stream};
use fet_federation::release_maker::ReleaseMaker;
use fet_federation::simulation::Simulation;
use fet_privacy::audit::membership::Separation;
use rand::RngExt;
use rand::seq::SliceRandom;

use crate::support::flex;
use crate::{record_code, release};

/// Number of records that are in the table or not, at random.
const CANDIDATES: usize = 400;

/// An attacked table, and the maker of its releases.
struct Attacked {
    experiment: Experiment,
    maker: ReleaseMaker,
    table: PartyTable,
    /// Records that are in the table or not.
    candidates: Vec<usize>,
    inside: Vec<bool>,
}

impl Attacked {
    fn new(text: &str, sets: &[&str], tables: fn(&std::path::Path, usize), rows: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        tables(folder.path(), rows);
        let mut settings: toml::Table = text.parse().expect("TOML");
        sets.iter().for_each(|one| set(&mut settings, one).expect("an assignment"));
        let experiment = Experiment::from_table(settings).expect("valid settings");
        let machine = fet::run::machine(&flex());
        let data = Simulation::new(&experiment, &machine).read(&Folders::new([folder.path().to_path_buf()]));
        let data: VerticalData = data.expect("tables");
        let maker = ReleaseMaker::new(&experiment, &data, 0).expect("a release");
        let table = data.secondaries[0].clone();
        let mut rng = stream(9, 0, Purpose::Attack, 0);
        let mut candidates: Vec<usize> = (0..table.keys.rows()).collect();
        candidates.shuffle(&mut rng);
        candidates.truncate(CANDIDATES);
        let inside = candidates.iter().map(|_| rng.random()).collect();
        Self { experiment, maker, table, candidates, inside }
    }

    /// Returns the table with the candidates that are inside.
    fn with(&self, inside: &[bool]) -> PartyTable {
        let out: BTreeSet<usize> = self
            .candidates
            .iter()
            .zip(inside)
            .filter(|(_, inside)| !**inside)
            .map(|(&record, _)| record)
            .collect();
        let kept: Vec<usize> = (0..self.table.keys.rows()).filter(|row| !out.contains(row)).collect();
        let (keys, features) = (self.table.keys.select_rows(&kept), self.table.features.select_rows(&kept));
        PartyTable { keys, features, ..self.table.clone() }
    }

    fn release(&self, table: &PartyTable, seed: u8) -> Released {
        self.maker.make(table, &OwnSeed::new([seed; 32])).expect("made")
    }

    fn noiseless(&self, table: &PartyTable) -> Noiseless {
        self.maker.noiseless(table).expect("fits").expect("it can be stated")
    }

    /// Returns the AUC of the attack on membership, which compares the likelihoods of the release with and without a record.
    fn membership(&self) -> f64 {
        let released = self.release(&self.with(&self.inside), 1);
        let score = |place: usize| {
            let [with, without] = [true, false].map(|is_in| {
                let mut inside = self.inside.clone();
                inside[place] = is_in;
                self.noiseless(&self.with(&inside))
            });
            with.ratio(&without, &released)
        };
        let scores: Vec<f64> = (0..self.candidates.len()).map(score).collect();
        Separation::from_scores(&scores, &self.inside).auc(0.05).value
    }
}

/// Returns the share of the symbols that equal the true ones, over the places with one record.
fn hits(symbols: &[i64], offers: &[Option<usize>]) -> f64 {
    let known: Vec<bool> = offers
        .iter()
        .zip(symbols)
        .filter_map(|(offer, symbol)| offer.map(|own| own as i64 == *symbol))
        .collect();
    known.iter().filter(|hit| **hit).count() as f64 / known.len() as f64
}

/// A membership guess from one symbol of k is right by p + (1 − 1/k) in sum over both cases, so that the AUC is
/// ½ + (p − 1/k)/2. Over some 200 records of each kind its standard deviation is at most 0.03, and the limits of 0.15 have
/// α = 6e-7. Means with noise change some symbols.
#[test]
fn releases_tell_membership_and_attributes_within_their_account() {
    for epsilon in [1.0f64, 3.0] {
        let own = format!("release.epsilon={epsilon}");
        let attacked = Attacked::new(record_code::EXPERIMENT, &[&own], record_code::tables, 1500);
        let Noiseless::Symbols { first, step, offers, symbols, truth } = attacked.noiseless(&attacked.table)
        else {
            panic!("symbols")
        };
        let auc = attacked.membership();
        let expected = 0.5 + 0.5 * (truth - 1.0 / symbols as f64);
        assert!((auc - expected).abs() < 0.15, "{auc} {expected}");
        // Pure ε-differential privacy allows no larger AUC than that of one answer with the odds e^ε; 0.09 above has α = 0.002.
        let most = epsilon.exp() / (1.0 + epsilon.exp());
        assert!(auc < most + 0.09, "{auc} {most}");
        // A record that joins changes the probability of its own symbol by p·k, and that of another by (1 − p)·k/(k − 1).
        let k = symbols as f64;
        assert!((truth * k).ln() <= epsilon && -((1.0 - truth) * k / (k - 1.0)).ln() <= epsilon, "{truth}");
        let of = |seed: u8| -> Vec<i64> {
            let released = attacked.release(&attacked.table, seed);
            released.values.iter().skip(first).step_by(step).copied().collect()
        };
        let once = of(1);
        assert_eq!(once, of(1), "a repeated run releases the same symbols");
        let reached = hits(&once, &offers);
        let all: Vec<Vec<i64>> = (1..=9).map(of).collect();
        let majority = |place: usize| {
            let count = |symbol: i64| all.iter().filter(|one| one[place] == symbol).count();
            (0..symbols as i64).max_by_key(|&symbol| count(symbol)).expect("a symbol")
        };
        let nine = hits(&(0..offers.len()).map(majority).collect::<Vec<_>>(), &offers);
        assert!(reached < truth + 0.05 && nine > reached, "{reached} {nine} {truth}");
        eprintln!(
            "record-code, ε = {epsilon}: membership AUC {auc:.3} (ε alone allows {most:.3}); symbol {reached:.3} (probability \
             {truth:.3}, guess {:.3}), the same in nine equal runs, {nine:.3} from nine counted releases",
            1.0 / symbols as f64
        );
    }
}

/// The shift of a record that joins is at most 1/σ in units of the noise, so that the AUC is at most Φ(1/(σ√2)); 0.09 above has
/// α = 0.001 at a standard deviation of 0.029. The cell of a record that is not in the table tells nearly as much of its value: the
/// errors are within five standard errors of each other (α = 6e-7). With ε = 20 the release tells membership.
#[test]
fn releases_tell_values_of_a_place_and_not_of_a_record() {
    for epsilon in [1.0, 3.0, 20.0] {
        let sets = [format!("release.epsilon={epsilon}"), "release.neighbouring=add-remove".to_string()];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let attacked = Attacked::new(release::EXPERIMENT, &sets, release::places, 60);
        let auc = attacked.membership();
        let released = attacked.release(&attacked.with(&attacked.inside), 1);
        let noise = attacked.maker.account(&released).parties[0].noise_multiplier;
        let most = statrs::distribution::ContinuousCDF::cdf(
            &statrs::distribution::Normal::standard(),
            1.0 / (noise * 2f64.sqrt()),
        );
        assert!(auc < most + 0.09, "{auc} {most}");
        assert!(epsilon < 20.0 || auc > 0.8, "{auc}");
        let component = attacked.experiment.release.as_ref().expect("a release").build(&()).expect("sound");
        let keys = attacked.table.keys.select_rows(&attacked.candidates);
        let columns = component.columns(&released, &keys).expect("covered");
        let guess = columns.iter().find(|column| column.name == "hosts: rent").expect("a mean");
        let fet_core::data::Features::Columns(features) = &attacked.table.features else { panic!("columns") };
        let rent = features.table.column("rent").expect("a column");
        let (Values::Number(guess), Values::Number(rent)) = (&guess.values, &rent.values) else {
            panic!("numbers")
        };
        let variance = {
            let mean = rent.iter().sum::<f64>() / rent.len() as f64;
            rent.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / rent.len() as f64
        };
        let error = |is_in: bool| {
            let of = attacked.candidates.iter().zip(guess).zip(&attacked.inside);
            let of: Vec<f64> = of
                .filter(|(_, inside)| **inside == is_in)
                .map(|((&record, guess), _)| (guess - rent[record]).powi(2))
                .collect();
            let count = of.len() as f64;
            let mean = of.iter().sum::<f64>() / count;
            let spread = of.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
            (mean / variance, (spread / count).sqrt() / variance)
        };
        let ((with, one), (without, other)) = (error(true), error(false));
        assert!((with - without).abs() < 5.0 * one.hypot(other), "{with} {without} {one} {other}");
        // A release of nothing would leave the whole variance.
        assert!(with < 0.8 && without < 0.8, "{with} {without}");
        eprintln!(
            "surface, ε = {epsilon}: membership AUC {auc:.3} (the account allows {most:.3}); squared error of a value, share of \
             the variance: {with:.3} for records of the table, {without:.3} for records that are not in it"
        );
    }
}
