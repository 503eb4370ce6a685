//! Tests the laws of every privacy mechanism.

use burn::tensor::{Tensor, TensorData};
use fet_core::parameters::host;
use fet_core::privacy::{
    Guarantee, Learning, Neighbouring, PrivacyMechanism, Randomness, Release, Releases, Share, Spent, Tally,
};
use fet_core::registry::Slot;
use fet_privacy::audit::epsilon_lower_bound;

use super::{all, random, rng};
use crate::support::devices;
use fet_contract::probe::probe;

/// Returns the schedule of ten epochs with three parties in secure aggregation.
fn schedule() -> Releases {
    Releases {
        epochs: 10,
        train_steps: 1,
        evaluation_steps: 1,
        rows: 1,
        all_rows: 200,
        train_active: 3,
        active: 3,
        block: 20,
        summed: true,
        randomness: Randomness::Experiment,
    }
}

/// Returns the releases of the first epochs of a run without dropped parties; frozen secondaries release all
/// rows in the first epoch.
fn tallies(schedule: &Releases, frozen: bool, epochs: usize) -> Vec<Tally> {
    let mut epoch = Tally::default();
    epoch.add(schedule.train_active, schedule.train_steps as u64);
    epoch.add(schedule.active, schedule.evaluation_steps as u64);
    let mut all = vec![epoch; epochs];
    if frozen {
        all.iter_mut().skip(1).for_each(|later| *later = Tally::default());
    }
    all
}

fn mechanism(slot: &Slot<dyn PrivacyMechanism>) -> Box<dyn PrivacyMechanism> {
    let mut mechanism = slot.build(&()).expect("sound defaults");
    mechanism.prepare(&schedule()).expect("a run that defaults can protect");
    mechanism
}

fn floats(share: Share) -> Vec<f64> {
    match share {
        Share::Floats(values) => values.into_iter().map(f64::from).collect(),
        Share::Integers { values, scale } => values.into_iter().map(|x| f64::from(x) / scale).collect(),
    }
}

#[test]
fn mechanisms_clip_releases_on_every_device() {
    for backend in devices() {
        for slot in all::<dyn PrivacyMechanism>() {
            let mechanism = mechanism(&slot);
            let long = random([3, 4, 5], 50, &backend.device).mul_scalar(100.0);
            let short = random([3, 4, 5], 50, &backend.device).mul_scalar(1e-3);
            let form = mechanism.form(3, 20);
            assert_eq!(form.is_none(), mechanism.is_identity(), "{slot:?}: a bound or no guarantee");
            let bounded = |x: &Tensor<3>| host(mechanism.clip(x.clone(), 3));
            assert_eq!(bounded(&short).len(), 60, "{slot:?}");
            for (a, b) in bounded(&short).iter().zip(host(short)) {
                assert!((a - b).abs() < 1e-9, "{slot:?} leaves short blocks alone");
            }
            let Some(form) = form else {
                assert_eq!(bounded(&long), host(long), "{slot:?} changes nothing");
                continue;
            };
            for block in bounded(&long).chunks(20) {
                let norm = block.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
                assert!((norm * 3.0 / form.bound - 1.0).abs() < 1e-5, "{slot:?}: a third of C, not {norm}");
            }
            // Zeros lack a direction, but they have a gradient.
            let zeros = Tensor::<3>::zeros([3, 4, 5], &backend.device.clone().autodiff()).require_grad();
            let mut gradients = mechanism.clip(zeros.clone(), 3).sum().backward();
            let gradient = host(zeros.grad_remove(&mut gradients).expect("a gradient"));
            assert!(gradient.iter().all(|x| (x - 1.0).abs() < 1e-6), "{slot:?}: {gradient:?}");
        }
    }
}

/// The mechanism cannot bound a block with NaN, infinity or an overflowing norm: the mechanism releases zeros with the same
/// noise, does not change other blocks, and gives the block no gradient.
#[test]
fn blocks_without_a_norm_become_zeros_on_every_device() {
    let mut mechanisms = 0;
    for slot in all::<dyn PrivacyMechanism>() {
        let mechanism = mechanism(&slot);
        if mechanism.is_identity() {
            continue;
        }
        mechanisms += 1;
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e38] {
            for backend in devices() {
                let name = format!("{slot:?} {bad} on {}", backend.name);
                let mut values = host(random([3, 4, 5], 55, &backend.device));
                let clean =
                    Tensor::<3>::from_data(TensorData::new(values.clone(), [3, 4, 5]), &backend.device);
                let clean = host(mechanism.clip(clean, 3));
                values[20 + 7] = bad;
                let device = backend.device.clone().autodiff();
                let input =
                    Tensor::<3>::from_data(TensorData::new(values, [3, 4, 5]), &device).require_grad();
                let bounded = mechanism.clip(input.clone(), 3);
                let found = host(bounded.clone().without_autodiff());
                assert_eq!(found[20..40], [0.0; 20], "{name}");
                assert_eq!((&found[..20], &found[40..]), (&clean[..20], &clean[40..]), "{name}");
                let mut gradients = bounded.sum().backward();
                let gradient = host(input.grad_remove(&mut gradients).expect("a gradient"));
                assert_eq!(gradient[20..40], [0.0; 20], "{name}: no gradient");
                assert!(gradient.iter().all(|x| x.is_finite()), "{name}: {gradient:?}");
            }
            if bad.is_finite() {
                continue;
            }
            let shared = |block: [f32; 20]| {
                let values = [[0.01; 20], block, [0.01; 20]].concat();
                let mut noise = rng(56);
                let mut release = Release { active: 3, summed: true, block: 20, noise: &mut noise };
                floats(mechanism.add_noise(values, &mut release))
            };
            let (mut block, sound) = ([0.02; 20], [0.02; 20]);
            block[7] = bad;
            assert_eq!(
                shared(block),
                shared([0.0; 20]),
                "{slot:?} {bad}: the noise alone, and the other blocks"
            );
            assert_ne!(shared(sound), shared([0.0; 20]), "{slot:?}: a sound block is in it");
        }
    }
    assert!(mechanisms >= 2, "both mechanisms of the program are bounded");
}

/// Compares derivatives of <clip(x), g> with central differences, along the gradient and along random
/// directions.
#[test]
fn clipping_is_differentiated_through_the_norm() {
    for backend in devices() {
        let device = backend.device.clone().autodiff();
        let weights = random([3, 4, 5], 51, &backend.device);
        let input: Tensor<3> = random([3, 4, 5], 52, &device).require_grad();
        let clip = |x: Tensor<3>| fet_components::mechanisms::clip_blocks(x, 0.5);
        let value = |x: Tensor<3>| {
            let values = host(clip(x) * weights.clone());
            values.iter().map(|&v| f64::from(v)).sum::<f64>()
        };
        let mut gradients = (clip(input.clone()) * weights.clone().autodiff()).sum().backward();
        let gradient = input.grad_remove(&mut gradients).expect("a gradient");
        let squared: f64 = host(gradient.clone()).iter().map(|&g| f64::from(g * g)).sum();
        let plain = input.without_autodiff();
        let step = 1e-2 / squared.sqrt();
        let moved = |direction: Tensor<3>, step: f64| value(plain.clone() + direction.mul_scalar(step));
        let along = |step: f64| moved(gradient.clone(), step);
        let numeric = (along(step) - along(-step)) / (2.0 * step);
        assert!((numeric / squared - 1.0).abs() < 1e-2, "{}: {numeric} and {squared}", backend.name);
        let name = format!("clipping on {}", backend.name);
        probe(&name, &host(gradient.clone()), &[0..20, 20..40, 40..60], 1e-4, |direction, step| {
            let data = TensorData::new(direction.to_vec(), [3, 4, 5]);
            moved(Tensor::from_data(data, &backend.device), step)
        });
    }
}

/// The sample variance of n values is within 5.3·√(2/n) of the true variance with probability 1 − 1e-7 (α).
#[test]
fn mechanisms_add_the_stated_noise() {
    for slot in all::<dyn PrivacyMechanism>() {
        let mechanism = mechanism(&slot);
        let Some(form) = mechanism.form(3, 20) else { continue };
        let count = 200_000;
        for (summed, parts) in [(true, 3.0), (false, 1.0)] {
            let mut noise = rng(53);
            let mut release = Release { active: 3, summed, block: 20, noise: &mut noise };
            let values = floats(mechanism.add_noise(vec![0.0; count], &mut release));
            let variance = values.iter().map(|x| x * x).sum::<f64>() / count as f64;
            let expected = form.noise.powi(2) / parts;
            let limit = 5.3 * (2.0 / count as f64).sqrt();
            assert!((variance - expected).abs() <= limit * expected, "{slot:?}: {variance} and {expected}");
            let mean = values.iter().sum::<f64>() / count as f64;
            assert!(mean.abs() <= 5.3 * (expected / count as f64).sqrt(), "{slot:?}: {mean}");
        }
        // The output contains the values themselves, up to rounding towards zero.
        let value = 0.9 * form.bound / 3.0 / 20f64.sqrt();
        let mut noise = rng(54);
        let mut release = Release { active: 3, summed: true, block: 20, noise: &mut noise };
        let shifted = floats(mechanism.add_noise(vec![value as f32; count], &mut release));
        let mean = shifted.iter().sum::<f64>() / count as f64;
        let limit = 5.3 * form.noise / (3.0 * count as f64).sqrt() + value / 100.0;
        assert!((mean - value).abs() < limit, "{slot:?}: {mean} and {value}");
    }
}

/// Settings under which every mechanism that knows them must account correctly.
const SETTINGS: [&str; 11] = [
    "",
    "noise = 20.0",
    "noise = 30.0\nclip = 0.5",
    "noise = 12.0\nneighbouring = \"add-remove\"",
    "noise = 9.0\nneighbouring = \"record\"",
    "noise = 30.0\nlearning = \"frozen\"",
    "noise = 9.0\nlearning = \"frozen\"\nmax_occurrences = 3",
    "noise = 9.0\nlearning = \"frozen\"\nmax_occurrences = 3\nneighbouring = \"record\"",
    "noise = 9.0\nlearning = \"frozen\"\nmax_occurrences = 3\nneighbouring = \"add-remove\"",
    "noise = 9.0\nlearning = \"assumed\"\nmax_occurrences = 1",
    "noise = 20.0\ncolluding = 2",
];

/// Compares a mechanism's statement about a run with the equivalent Gaussian mechanism.
///
/// The Gaussian has the same number of releases and rows; each row is moved by the sensitivity of the
/// mechanism's neighbouring data sets, under its noise. [`mechanisms_add_the_stated_noise`] tests the
/// noise itself.
#[test]
fn accounts_are_monotone_and_never_below_the_exact_loss() {
    let schedule = Releases { epochs: 4, train_steps: 2, rows: 2, ..schedule() };
    let mut guarantees = 0;
    for (slot, text) in
        all::<dyn PrivacyMechanism>().iter().flat_map(|slot| SETTINGS.map(|text| (slot, text)))
    {
        let Some(mut mechanism) = with(slot.kind(), text) else { continue };
        mechanism.prepare(&schedule).expect("a run that can be protected");
        let name = format!("{slot:?} {text:?}");
        // Without a release the loss is 0; an unbounded loss lacks an ε.
        let spent =
            |epochs| mechanism.spent(&schedule, &tallies(&schedule, mechanism.freezes_secondaries(), epochs));
        let epsilon = |epochs| spent(epochs).epsilon.unwrap_or(f64::INFINITY);
        assert_eq!(epsilon(0), 0.0, "{name}");
        assert!(epsilon(1) > 0.0 && epsilon(1) <= epsilon(4), "{name}");
        assert!(!spent(1).statement.is_empty(), "{name} states its assumptions");
        let form = mechanism.form(schedule.active, schedule.block);
        let guarantee = spent(4).guarantee;
        assert_eq!(
            form.is_some(),
            guarantee.is_some(),
            "{name}: a mechanism with a bound states its guarantee"
        );
        let (Some(form), Some(guarantee)) = (form, guarantee) else { continue };
        guarantees += 1;
        assert_eq!(guarantee.epsilon_by_epoch.len(), 4, "{name}");
        assert!(guarantee.epsilon_by_epoch.is_sorted() && guarantee.assumptions.len() >= 4, "{name}");
        let (releases, rows) = match guarantee.learning {
            Learning::Frozen => (1, schedule.all_rows),
            Learning::Counted | Learning::Assumed => (4 * 3, schedule.rows),
        };
        let limit = mechanism.selection().occurrences;
        // A replaced record leaves as many rows as it may serve and joins the same number of other rows.
        let ways = if guarantee.neighbouring == Neighbouring::AddRemove { 1 } else { 2 };
        let rows = if limit == 0 { rows } else { (ways * limit).min(rows) };
        assert_eq!((guarantee.releases, guarantee.occurrences), (releases, rows), "{name}");
        // The noise on the sum matches the statement, without the colluding parties' shares.
        let noise = guarantee.noise * guarantee.clip;
        let honest = (schedule.active - guarantee.colluding) as f64 / schedule.active as f64;
        let left = form.noise * honest.sqrt();
        assert!(
            (left / noise - 1.0).abs() < 1e-9 && form.bound == guarantee.clip,
            "{name}: {left} and {noise}"
        );
        let distance = sensitivity(&guarantee, schedule.active) * (rows as f64).sqrt();
        let multiplier = guarantee.noise_multiplier * distance / noise;
        assert!(
            multiplier <= 1.0 && multiplier > 0.99,
            "{name}: {multiplier} of the noise over the distance"
        );
        assert!(!guarantee.amplification, "{name}: the truth below is that of releases of every record");
        let mu = (releases as f64).sqrt() * distance / noise;
        let truth = fet_privacy::accountant::gaussian::epsilon(mu, spent(4).delta);
        let found = epsilon(4);
        let rounded = truth * (1.0 - 1e-12);
        assert!(found >= rounded && found < 1.01 * truth, "{name}: {found} and {truth}");
        let tallies = tallies(&schedule, mechanism.freezes_secondaries(), 4);
        assert_eq!(mechanism.epsilon_at(&schedule, &tallies, spent(4).delta), found, "{name}");
        let mut last = f64::INFINITY;
        for delta in [1e-6, 1e-4, 1e-2, 0.1] {
            let truth = fet_privacy::accountant::gaussian::epsilon(mu, delta);
            let found = mechanism.epsilon_at(&schedule, &tallies, delta);
            assert!(
                found >= truth * (1.0 - 1e-12) && found <= 1.01 * truth + 1e-6,
                "{name}: {found} and {truth}"
            );
            let ideal = mechanism.ideal_epsilon_at(&schedule, &tallies, delta);
            assert!(
                ideal <= found && ideal >= truth * (1.0 - 1e-12),
                "{name}: {ideal} under ideal noise, {truth}"
            );
            assert!(found <= last, "{name}: ε rises with δ to {delta}");
            last = found;
        }
    }
    assert!(guarantees >= 2, "some mechanisms guarantee something");
}

/// Returns the largest distance between the sums of neighbouring data sets for one row.
///
/// The distance is 2C if all parties' blocks flip their sign, and 2C/|A| if one party's block does
/// (`fet-privacy`'s statement).
fn sensitivity(guarantee: &Guarantee, active: usize) -> f64 {
    let one = 2.0 * guarantee.clip / active as f64;
    match guarantee.neighbouring {
        Neighbouring::Replace => 2.0 * guarantee.clip,
        Neighbouring::AddRemove | Neighbouring::Record => one,
    }
}

/// Returns a mechanism with these settings; `None` if the mechanism does not know them.
fn with(kind: &str, settings: &str) -> Option<Box<dyn PrivacyMechanism>> {
    let mut table: toml::Table = settings.parse().expect("TOML");
    let defaults = Slot::<dyn PrivacyMechanism>::with_defaults(kind).expect("sound defaults").settings();
    if table.keys().any(|key| !defaults.contains_key(key)) {
        return None;
    }
    table.insert("kind".to_string(), kind.into());
    let slot = Slot::<dyn PrivacyMechanism>::from_table(table).expect("sound settings");
    Some(slot.build(&()).expect("sound settings"))
}

/// An attacker who sees the sums of a run of two epochs guesses which of two neighbouring data sets the run
/// used.
///
/// For one row, every party's block lies at one end of its bound or at the other. The lower bound on ε from
/// the guesses is below the mechanism's ε, except with probability α = 1e-7 per test
/// ([`epsilon_lower_bound`]). The bound is close to the claim: the test would fail if the claim or the noise
/// were a fifth smaller.
#[test]
fn guesses_reveal_at_most_the_claimed_epsilon() {
    const DRAWS: usize = 200_000;
    let schedule = Releases { epochs: 2, ..schedule() };
    for slot in all::<dyn PrivacyMechanism>() {
        // A guess has the most power at a large δ; a mechanism without this setting has a fixed δ.
        let Some(mut mechanism) = with(slot.kind(), "delta = 0.05").or_else(|| with(slot.kind(), "")) else {
            panic!("{slot:?} has sound defaults")
        };
        mechanism.prepare(&schedule).expect("a run that can be protected");
        let Some(form) = mechanism.form(3, 1) else { continue };
        let Spent { epsilon, delta, guarantee, .. } =
            mechanism.spent(&schedule, &tallies(&schedule, false, 2));
        let (claimed, guarantee) = epsilon.zip(guarantee).expect("a mechanism with a bound claims an ε");
        let moved = if guarantee.neighbouring == Neighbouring::Replace { 3 } else { 1 };
        // Sum over the run's releases, with three parties' shares in each.
        let world = |value: f64, world: u64| {
            let mut sums = vec![0.0; DRAWS];
            for (release, party) in (0..guarantee.releases).flat_map(|r| (0..3).map(move |party| (r, party)))
            {
                let own = if party < moved { value } else { 0.0 };
                let mut noise = rng(1_000 + 100 * release + 10 * world + party);
                let mut release = Release { active: 3, summed: true, block: 1, noise: &mut noise };
                let shares = floats(mechanism.add_noise(vec![own as f32; DRAWS], &mut release));
                sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
            }
            sums
        };
        let end = form.bound / 3.0;
        // Threshold at which the likelihoods of two Gaussians differ by e^ε, where a guess has the most
        // power.
        let releases = guarantee.releases as f64;
        let threshold = claimed * form.noise.powi(2) / (2.0 * end * moved as f64);
        let betrayed = epsilon_lower_bound(&world(end, 0), &world(-end, 1), threshold, delta, 1e-7);
        eprintln!("{slot:?}: {betrayed:.4} of {claimed:.4} in {releases} releases");
        assert!(betrayed <= claimed, "{slot:?} betrays {betrayed} and claims {claimed}");
        assert!(betrayed > 0.8 * claimed, "{slot:?}: {betrayed} of {claimed}: the guesses tell too little");
    }
}

/// The ε of a broken sum is that of one party's part under its own noise.
///
/// This is the accountant's figure for that noise, above the ε of the sum. Without a sum that hides the parts
/// there is no such ε.
#[test]
fn epsilon_without_the_sum_is_that_of_the_local_noise() {
    let mut found = 0;
    for slot in all::<dyn PrivacyMechanism>() {
        for colluding in [0, 1] {
            let text = format!("noise = 9.0\nneighbouring = \"record\"\ncolluding = {colluding}");
            let Some(mut mechanism) = with(slot.kind(), &text) else { continue };
            let spent = |mechanism: &dyn PrivacyMechanism, schedule: &Releases| {
                let spent = mechanism.spent(schedule, &tallies(schedule, false, 4));
                let fails = spent.guarantee.expect("private").epsilon_if_sum_fails;
                (spent.epsilon.expect("bounded"), fails, spent.delta, spent.statement)
            };
            mechanism.prepare(&schedule()).expect("a run that can be protected");
            let (epsilon, fails, delta, statement) = spent(mechanism.as_ref(), &schedule());
            let fails = fails.expect("a sum hides the parts");
            // Eight releases of one row move by at most 2C/3 under the noise σC/√(3−t) of one party.
            let local = 9.0 / f64::from(3 - colluding).sqrt();
            let truth = fet_privacy::accountant::gaussian::epsilon(8f64.sqrt() * 2.0 / 3.0 / local, delta);
            assert!(fails >= truth * (1.0 - 1e-12) && fails < truth * 1.001, "{text}: {fails} and {truth}");
            assert!(fails > 1.2 * epsilon, "{text}: {fails} and {epsilon}");
            assert!(statement.contains(&format!("ε would be {fails:.4}")), "{statement}");
            let seen = Releases { summed: false, ..schedule() };
            mechanism.prepare(&seen).expect("a run that can be protected");
            let (_, fails, _, statement) = spent(mechanism.as_ref(), &seen);
            assert!(fails.is_none() && !statement.contains("ε would be"), "{text}: {statement}");
            found += 1;
        }
        for neighbouring in ["replace", "add-remove"] {
            let text = format!("noise = 9.0\nneighbouring = \"{neighbouring}\"");
            let Some(mut mechanism) = with(slot.kind(), &text) else { continue };
            mechanism.prepare(&schedule()).expect("a run that can be protected");
            let Spent { epsilon, guarantee, .. } =
                mechanism.spent(&schedule(), &tallies(&schedule(), false, 4));
            let fails = guarantee.expect("private").epsilon_if_sum_fails;
            assert!(fails >= epsilon, "{text}: who sees the shares sees the sum");
        }
    }
    assert!(found >= 2, "some mechanisms hide parts in sums");
}

/// Colluding parties can subtract their own noise from a sum.
///
/// The ε with t colluding parties is the accountant's figure for the noise of the other 3 − t, and at least
/// one party is honest.
#[test]
fn epsilon_under_collusion_is_that_of_the_honest_parties_noise() {
    let mut found = 0;
    for slot in all::<dyn PrivacyMechanism>() {
        for (colluding, counts) in [(0, 2), (1, 2), (2, 3)] {
            let text = format!("noise = 9.0\nneighbouring = \"record\"\ncolluding = {colluding}");
            let Some(mut mechanism) = with(slot.kind(), &text) else { continue };
            mechanism.prepare(&schedule()).expect("a run that can be protected");
            let spent = mechanism.spent(&schedule(), &tallies(&schedule(), false, 4));
            let by = spent.guarantee.expect("private").epsilon_by_colluding;
            assert_eq!((by.len(), Some(by[colluding])), (counts, spent.epsilon), "{text}");
            for (t, &epsilon) in by.iter().enumerate() {
                // Eight releases of one row move by at most 2C/3.
                let noise = 9.0 * ((3 - t) as f64 / (3 - colluding) as f64).sqrt();
                let mu = 8f64.sqrt() * 2.0 / 3.0 / noise;
                let truth = fet_privacy::accountant::gaussian::epsilon(mu, spent.delta);
                let sound = epsilon >= truth * (1.0 - 1e-12) && epsilon < truth * 1.001;
                assert!(sound, "{text}, {t} colluding: {epsilon} and {truth}");
                let words = format!("{t}, ε is {epsilon:.4}");
                assert!(spent.statement.contains(&words), "{words} in {}", spent.statement);
            }
            let seen = Releases { summed: false, ..schedule() };
            let spent = mechanism.spent(&seen, &tallies(&seen, false, 4));
            assert!(spent.guarantee.expect("private").epsilon_by_colluding.is_empty(), "no sum hides parts");
            found += 1;
        }
        // The last party is honest and adds its own share of the noise.
        let Some(mut mechanism) = with(slot.kind(), "noise = 9.0\nneighbouring = \"record\"") else {
            continue;
        };
        let two = Releases { train_active: 1, active: 2, ..schedule() };
        mechanism.prepare(&two).expect("a run that can be protected");
        let spent = mechanism.spent(&two, &tallies(&two, false, 1));
        let guarantee = spent.guarantee.expect("private");
        assert!(guarantee.epsilon_by_colluding[1].is_finite(), "{guarantee:?}");
    }
    assert!(found >= 2, "some mechanisms hide parts in sums");
}

/// If parties drop out, each remaining party needs more noise, but the range of integers is limited. The
/// mechanism refuses such a release, because otherwise the noise would be below the accounted noise.
#[test]
fn refuses_noise_beyond_the_range_of_integers() {
    let run = Releases { train_active: 15, active: 15, block: 16, ..schedule() };
    let mut mechanism = with("discrete-gaussian", "noise = 1e4\ncolluding = 8").expect("its settings");
    mechanism.prepare(&run).expect("fifteen parties share the noise");
    for active in [15, 13, 12] {
        mechanism.check_parties(&run, active).expect("it fits");
    }
    let error = mechanism.check_parties(&run, 10).expect_err("refused").to_string();
    assert!(error.contains("each of 10 parties") && error.contains("1e8 units"), "{error}");
    // If the noise is too small to draw, the mechanism adds more noise than accounted for.
    let mut mechanism = with("discrete-gaussian", "noise = 0.05").expect("its settings");
    mechanism.prepare(&schedule()).expect("three parties");
    mechanism.check_parties(&schedule(), 2).expect("the least that can be drawn is drawn");
}
