//! The laws of each slot, one suite over every plug-in that is linked into the program.

use burn::tensor::{Device, Int, Tensor, TensorData};
use fet_core::aggregator::{Aggregator, Round};
use fet_core::data::{Keys, Matrix, TextTable};
use fet_core::encoder::{Computation, Encoder, EncoderContext, NeighbourBatch};
use fet_core::linker::Linker;
use fet_core::model::{ModelShape, Pass};
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::privacy::{PrivacyMechanism, Release, Schedule, Share};
use fet_core::registry::{Plugin, Slot, SlotKind, plugins};
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use rand::RngExt;

use crate::support::devices;

/// Every plug-in of a slot with its default settings.
fn all<T>() -> Vec<Slot<T>>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let found: Vec<_> = plugins::<T>().iter().map(|p| Slot::of(p.kind).expect("sound defaults")).collect();
    assert!(!found.is_empty(), "the slot {} has plug-ins", T::SLOT);
    found
}

fn rng(round: u64) -> ChaCha8Rng {
    stream(11, 0, Purpose::Linking, round)
}

fn keys(rows: usize, columns: usize, round: u64) -> Matrix<f64> {
    let mut rng = rng(round);
    Matrix::new(columns, (0..rows * columns).map(|_| rng.random()).collect())
}

fn random<const D: usize>(shape: [usize; D], round: u64, device: &Device) -> Tensor<D> {
    let mut rng = rng(round);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random::<f32>() - 0.5).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Names of two words; a few records are like another's but for a letter.
fn names(rows: usize, columns: usize, round: u64) -> Keys {
    let mut rng = rng(round);
    let mut word = || (0..6).map(|_| char::from(b'a' + rng.random_range(0..26u8))).collect::<String>();
    Keys::Text(TextTable::new(columns, (0..rows * columns).map(|_| word()).collect()))
}

/// Keys of each kind that a linker takes, drawn by `round`.
fn keys_for(linker: &dyn Linker, rows: usize, columns: usize, round: u64) -> Vec<Keys> {
    let kinds: [Keys; 2] = [keys(rows, columns, round).into(), names(rows, columns, round)];
    kinds.into_iter().filter(|keys| linker.takes().fits(keys)).collect()
}

#[test]
fn linkers_sort_stay_in_range_honour_k_and_repeat() {
    for slot in all::<dyn Linker>() {
        for columns in [1, 2, 4] {
            let linker = slot.build(&()).expect("sound defaults");
            let neighbours = linker.neighbours();
            let kinds = keys_for(linker.as_ref(), 30, columns, 1);
            assert!(!kinds.is_empty(), "{slot:?} takes some keys");
            for (kind, queries) in kinds.iter().enumerate() {
                let records = |rows, columns| keys_for(linker.as_ref(), rows, columns, 2).swap_remove(kind);
                let links = linker.link(queries, &records(100, columns), 3).expect("linkable");
                assert_eq!((links.rows(), links.neighbours()), (30, neighbours), "{slot:?}");
                for query in 0..30 {
                    assert!(links.row(query).iter().all(|&record| record < 100), "{slot:?}");
                    let similarities = links.similarities(query);
                    assert_eq!(similarities.is_some(), linker.gives_similarities(), "{slot:?}");
                    assert!(similarities.is_none_or(|all| all.is_sorted_by(|a, b| a >= b)), "{slot:?}");
                    let few = neighbours.min(3);
                    assert_eq!(links.first(3).row(query), &links.row(query)[..few], "{slot:?}");
                    let mut distinct = links.row(query)[..links.available()].to_vec();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), links.available(), "{slot:?} names no record twice");
                }
                let again = slot.build(&()).expect("sound defaults").link(queries, &records(100, columns), 3);
                assert!(again.is_ok_and(|again| again == links), "{slot:?} repeats");
                assert!(linker.link(queries, &records(100, columns + 1), 3).is_err(), "{slot:?}: other keys");
                let few = linker.link(queries, &records(neighbours - 1, columns), 3);
                assert!(few.is_err(), "{slot:?}: fewer records than K");
            }
        }
    }
}

/// What leaves the primary is what it is linked by: the same links whether the keys are concealed or not, by way of a
/// challenge where the linker poses one.
#[test]
fn linkers_link_concealed_keys_as_they_link_keys() {
    for slot in all::<dyn Linker>() {
        let linker = slot.build(&()).expect("sound defaults");
        for (kind, queries) in keys_for(linker.as_ref(), 30, 2, 1).iter().enumerate() {
            let records = keys_for(linker.as_ref(), 100, 2, 2).swap_remove(kind);
            let plain = linker.link(queries, &records, 3).expect("linkable");
            let concealed = linker.conceal(queries, 3).expect("they can be concealed");
            assert_eq!((concealed.rows(), concealed.columns()), (30, 2), "{slot:?}");
            let challenge = linker.challenge(&records).expect("a challenge or none");
            assert_eq!(challenge.is_some(), linker.asks(), "{slot:?}");
            let links = match challenge {
                Some(challenge) => {
                    let answer = linker.answer(&challenge).expect("its own challenge");
                    linker.link_answered(&concealed, &records, &answer, 3)
                }
                None => linker.link(&concealed, &records, 3),
            };
            assert_eq!(links, Ok(plain), "{slot:?}");
        }
    }
}

#[test]
fn linkers_refuse_keys_of_the_wrong_kind_and_say_what_they_reveal() {
    for slot in all::<dyn Linker>() {
        let linker = slot.build(&()).expect("sound defaults");
        let kinds: [Keys; 2] = [keys(50, 2, 1).into(), names(50, 2, 1)];
        for wrong in kinds.iter().filter(|keys| !linker.takes().fits(keys)) {
            let error = linker.link(wrong, wrong, 3).expect_err("refused").to_string();
            for part in ["linker.kind", linker.takes().name(), wrong.kind_name()] {
                assert!(error.contains(part), "{slot:?}: {part} in {error}");
            }
        }
        let mixed = linker.link(&kinds[0], &kinds[1], 3);
        assert!(mixed.is_err() || slot.kind() == "random", "{slot:?}: numbers against text");
        let reveals = linker.reveals();
        assert!(
            [reveals.secondary, reveals.primary, reveals.outsider].iter().all(|text| !text.is_empty()),
            "{slot:?}"
        );
    }
}

/// A text key without content resembles nothing: neither another such nor anyone else.
#[test]
fn empty_keys_match_nothing() {
    for slot in all::<dyn Linker>() {
        let linker = slot.build(&()).expect("sound defaults");
        let (Some(floor), true) = (linker.floor(), linker.takes().fits(&names(1, 1, 1))) else { continue };
        let Keys::Text(records) = names(100, 2, 2) else { unreachable!("names are texts") };
        let mut cells = records.cells().to_vec();
        cells[..20].iter_mut().for_each(|cell| *cell = " - ".into());
        let records = Keys::Text(TextTable::new(2, cells));
        let queries = Keys::Text(TextTable::new(2, vec![String::new(), "N/A".into()]));
        let links = linker.link(&queries, &records, 3).expect("linkable");
        assert!(links.similarities(0).is_some_and(|all| all.iter().all(|&s| s <= floor)), "{slot:?}");
    }
}

/// Representations and similarities of the parties named, drawn anew for each name.
fn round(names: &[u64], parties: usize, device: &Device) -> (Vec<Tensor<3>>, Round) {
    let parts: Vec<Tensor<3>> = names.iter().map(|&name| random([3, 4, 5], name, device)).collect();
    let round = Round {
        parties,
        active: (0..names.len()).collect(),
        shapes: vec![[3, 4, 5]; names.len()],
        similarities: names.iter().map(|&name| random([3, 4], name + 100, device)).collect(),
    };
    (parts, round)
}

#[test]
fn aggregators_have_their_width_spread_by_the_adjoint_and_do_not_mind_the_order() {
    for backend in devices() {
        for slot in all::<dyn Aggregator>() {
            let aggregator = slot.build(&()).expect("sound defaults");
            let combine = |names: &[u64], parties| {
                let (parts, round) = round(names, parties, &backend.device);
                aggregator.combine(parts, &round)
            };
            let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
            for parties in [3, 5] {
                let width = aggregator.width(parties, 5);
                let memory = combine(&[1, 2, 3], parties);
                assert_eq!(memory.dims(), [3, 4, width], "{slot:?}");
                if width == 5 {
                    let turned = host(combine(&[3, 1, 2], parties));
                    assert!(close(&host(memory.clone()), &turned), "{slot:?}: order");
                }
                // <A x, g> = <x, A* g>
                let dot = |a: &[f32], b: &[f32]| {
                    assert_eq!(a.len(), b.len(), "{slot:?}");
                    a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>()
                };
                let gradient: Tensor<3> = random([3, 4, width], 9, &backend.device);
                let left = dot(&host(memory), &host(gradient.clone()));
                let (parts, round) = round(&[1, 2, 3], parties, &backend.device);
                let shares = aggregator.spread(gradient, &round);
                let right: f64 = shares.into_iter().zip(parts).map(|(g, x)| dot(&host(x), &host(g))).sum();
                assert!((left - right).abs() < 1e-5, "{slot:?}: {left} and {right}");
            }
        }
    }
}

#[test]
fn what_is_called_a_mean_gives_equals_themselves() {
    let device = crate::support::flex().device;
    for kind in ["average", "secure-average", "similarity-weighted"] {
        let slot = Slot::<dyn Aggregator>::of(kind).expect("sound defaults");
        let (parts, round) = round(&[1, 1, 1], 3, &device);
        let expected = host(parts[0].clone());
        let mean = host(slot.build(&()).expect("sound defaults").combine(parts, &round));
        assert!(mean.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{kind}");
    }
}

#[test]
fn a_single_position_is_repeated_beside_longer_parts() {
    let device = crate::support::flex().device;
    let concat = Slot::<dyn Aggregator>::of("concat").expect("sound defaults").build(&()).expect("sound");
    let (long, short): (Tensor<3>, Tensor<3>) =
        (random([2, 3, 2], 1, &device), random([2, 1, 4], 2, &device));
    let round = Round {
        parties: 3,
        active: vec![0, 2],
        shapes: vec![[2, 3, 2], [2, 1, 4]],
        similarities: Vec::new(),
    };
    let memory = concat.combine(vec![long, short.clone()], &round);
    assert_eq!(memory.dims(), [2, 3, 2 + 2 + 4]);
    for position in 0..3 {
        assert_eq!(host(memory.clone().narrow(1, position, 1).narrow(2, 4, 4)), host(short.clone()));
    }
    let shares = concat.spread(memory, &round);
    assert_eq!(shares[1].dims(), [2, 1, 4]);
    let tripled = host(short).iter().map(|x| 3.0 * x).collect::<Vec<_>>();
    assert!(host(shares[1].clone()).iter().zip(&tripled).all(|(a, b)| (a - b).abs() < 1e-6));
}

struct EncoderCase {
    shape: ModelShape,
    optimizer: OptimizerSettings,
    device: Device,
    computation: Computation,
}

/// Every way in which an encoder may be computed.
const COMPUTATIONS: [Computation; 4] = [
    Computation { fused: false, recompute: false },
    Computation { fused: false, recompute: true },
    Computation { fused: true, recompute: false },
    Computation { fused: true, recompute: true },
];

impl EncoderCase {
    fn new(device: &Device, positional_encoding: bool, computation: Computation) -> Self {
        let shape = ModelShape {
            hidden: 8,
            heads: 2,
            dropout: 0.25,
            positional_encoding,
            frequency_std: 1.0,
            shared_norm: false,
        };
        Self { shape, optimizer: OptimizerSettings::lamb(), device: device.clone().autodiff(), computation }
    }

    fn build(&self, slot: &Slot<dyn Encoder>) -> Box<dyn Encoder> {
        let context = EncoderContext {
            device: &self.device,
            weights: rng(20),
            neighbours: 4,
            key_columns: 2,
            feature_columns: 3,
            shape: &self.shape,
            optimizer: &self.optimizer,
            computation: self.computation,
        };
        slot.build(&context).expect("sound defaults")
    }

    /// Three rows with four neighbours among five records.
    fn batch(&self, tracked: bool) -> NeighbourBatch {
        let device = if tracked { self.device.clone() } else { self.device.clone().without_autodiff() };
        NeighbourBatch {
            keys: random([5, 2], 30, &device),
            features: random([5, 3], 31, &device),
            slots: Tensor::<1, Int>::from_data([0, 1, 2, 3, 1, 2, 3, 4, 4, 0, 0, 2], &device),
            rows: 3,
            neighbours: 4,
            available: 4,
        }
    }
}

/// The directional derivative of <R(θ), g> by central differences, against the gradient that backward
/// leaves; dropout is on, with the same masks each time.
#[test]
fn encoders_differentiate_what_they_compute() {
    for backend in devices() {
        let encoders = all::<dyn Encoder>();
        let cases = COMPUTATIONS.iter().flat_map(|how| [(how, true), (how, false)]);
        for (slot, (how, encoding)) in cases.flat_map(|case| encoders.iter().map(move |slot| (slot, case))) {
            let case = EncoderCase::new(&backend.device, encoding, *how);
            let mut encoder = case.build(slot);
            let start = encoder.learner().parameters().clone();
            let gradient = random([3, 4, 8], 40, &backend.device);
            let weights = host(gradient.clone());
            let pass = || Pass::training(rng(41));
            let representation = encoder.forward(&case.batch(true), &mut pass(), true);
            assert_eq!(representation.dims(), [3, 4, 8], "{slot:?}");
            encoder.backward(gradient);
            let found = encoder.learner().gradient().values.clone();
            let length = found.iter().map(|g| f64::from(g * g)).sum::<f64>().sqrt();
            assert!(length > 0.0, "{slot:?} has a gradient");
            let step = 1e-2 / length;
            let mut value = |sign: f64| {
                let mut moved = Parameters::default();
                for segment in start.segments() {
                    let values =
                        start.values()[segment.range.clone()].iter().zip(&found[segment.range.clone()]);
                    let values: Vec<f32> =
                        values.map(|(w, g)| (f64::from(*w) + sign * step * f64::from(*g)) as f32).collect();
                    moved.push(&segment.name, &segment.shape, &values);
                }
                encoder.learner_mut().load(&moved).expect("the same names");
                let output = host(encoder.forward(&case.batch(true), &mut pass(), true));
                output.iter().zip(&weights).map(|(a, b)| f64::from(a * b)).sum::<f64>()
            };
            let numeric = (value(1.0) - value(-1.0)) / (2.0 * step);
            let analytic = length * length;
            let difference = (numeric - analytic).abs() / analytic;
            assert!(difference < 1e-2, "{slot:?} on {}, {how:?}: {numeric} and {analytic}", backend.name);
        }
    }
}

#[test]
fn encoders_evaluate_without_dropout_and_see_each_record_once() {
    for (slot, how) in all::<dyn Encoder>().iter().flat_map(|slot| COMPUTATIONS.map(|how| (slot, how))) {
        let case = EncoderCase::new(&crate::support::flex().device, true, how);
        let mut encoder = case.build(slot);
        let batch = case.batch(false);
        let evaluate = |encoder: &mut Box<dyn Encoder>, batch: &NeighbourBatch| {
            host(encoder.forward(batch, &mut Pass::evaluation(), false))
        };
        let output = evaluate(&mut encoder, &batch);
        assert_eq!(output, evaluate(&mut encoder, &batch), "{slot:?}: evaluation repeats");
        // A record told apart for each slot gives what a record shared between slots gives.
        let slots = batch.slots.clone();
        let apart = NeighbourBatch {
            keys: batch.keys.clone().select(0, slots.clone()),
            features: batch.features.clone().select(0, slots),
            slots: Tensor::<1, Int>::arange(0..12, &batch.keys.device()),
            ..batch
        };
        for (a, b) in output.iter().zip(evaluate(&mut encoder, &apart)) {
            assert!((a - b).abs() < 1e-5, "{slot:?}");
        }
    }
}

/// A run of ten epochs with three parties that are summed in secret.
fn schedule() -> Schedule {
    Schedule {
        epochs: 10,
        train_steps: 1,
        evaluation_steps: 1,
        rows: 1,
        all_rows: 200,
        train_active: 3,
        active: 3,
        block: 20,
        summed: true,
    }
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
fn mechanisms_bound_what_leaves_on_every_device() {
    for backend in devices() {
        for slot in all::<dyn PrivacyMechanism>() {
            let mechanism = mechanism(&slot);
            let long = random([3, 4, 5], 50, &backend.device).mul_scalar(100.0);
            let short = random([3, 4, 5], 50, &backend.device).mul_scalar(1e-3);
            let form = mechanism.form(3, 20);
            assert_eq!(form.is_none(), mechanism.is_identity(), "{slot:?}: a bound or no guarantee");
            let bounded = |x: &Tensor<3>| host(mechanism.bound(x.clone(), 3));
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
            // Zeros have no direction, and still a gradient.
            let zeros = Tensor::<3>::zeros([3, 4, 5], &backend.device.clone().autodiff()).require_grad();
            let mut gradients = mechanism.bound(zeros.clone(), 3).sum().backward();
            let gradient = host(zeros.grad_remove(&mut gradients).expect("a gradient"));
            assert!(gradient.iter().all(|x| (x - 1.0).abs() < 1e-6), "{slot:?}: {gradient:?}");
        }
    }
}

/// The directional derivative of <clip(x), g> by central differences.
#[test]
fn clipping_is_differentiated_through_the_norm() {
    for backend in devices() {
        let device = backend.device.clone().autodiff();
        let weights = random([3, 4, 5], 51, &backend.device);
        let input: Tensor<3> = random([3, 4, 5], 52, &device).require_grad();
        let clip = |x: Tensor<3>| fet_core::privacy::clip_blocks(x, 0.5);
        let value = |x: Tensor<3>| {
            let values = host(clip(x) * weights.clone());
            values.iter().map(|&v| f64::from(v)).sum::<f64>()
        };
        let mut gradients = (clip(input.clone()) * weights.clone().autodiff()).sum().backward();
        let gradient = input.grad_remove(&mut gradients).expect("a gradient");
        let squared: f64 = host(gradient.clone()).iter().map(|&g| f64::from(g * g)).sum();
        let plain = input.without_autodiff();
        let step = 1e-2 / squared.sqrt();
        let moved = |sign: f64| value(plain.clone() + gradient.clone().mul_scalar(sign * step));
        let numeric = (moved(1.0) - moved(-1.0)) / (2.0 * step);
        assert!((numeric / squared - 1.0).abs() < 1e-2, "{}: {numeric} and {squared}", backend.name);
    }
}

/// The sample variance of n values is within 5.3·√(2/n) of the truth with probability 1 − 1e-7 (α).
#[test]
fn mechanisms_add_the_noise_they_state() {
    for slot in all::<dyn PrivacyMechanism>() {
        let mechanism = mechanism(&slot);
        let Some(form) = mechanism.form(3, 20) else { continue };
        let count = 200_000;
        for (summed, parts) in [(true, 3.0), (false, 1.0)] {
            let mut noise = rng(53);
            let mut release = Release { active: 3, summed, block: 20, noise: &mut noise };
            let values = floats(mechanism.share(vec![0.0; count], &mut release));
            let variance = values.iter().map(|x| x * x).sum::<f64>() / count as f64;
            let expected = form.noise.powi(2) / parts;
            let limit = 5.3 * (2.0 / count as f64).sqrt();
            assert!((variance / expected - 1.0).abs() < limit, "{slot:?}: {variance} and {expected}");
            let mean = values.iter().sum::<f64>() / count as f64;
            assert!(mean.abs() < 5.3 * (expected / count as f64).sqrt(), "{slot:?}: {mean}");
        }
        // The values themselves are in it, up to rounding towards zero.
        let value = 0.9 * form.bound / 3.0 / 20f64.sqrt();
        let mut noise = rng(54);
        let mut release = Release { active: 3, summed: true, block: 20, noise: &mut noise };
        let shifted = floats(mechanism.share(vec![value as f32; count], &mut release));
        let mean = shifted.iter().sum::<f64>() / count as f64;
        let limit = 5.3 * form.noise / (3.0 * count as f64).sqrt() + value / 100.0;
        assert!((mean - value).abs() < limit, "{slot:?}: {mean} and {value}");
    }
}

#[test]
fn mechanisms_account_monotonically_and_never_below_the_truth() {
    for slot in all::<dyn PrivacyMechanism>() {
        let mechanism = mechanism(&slot);
        // No release, no loss; and no number for a loss that is not bounded.
        let spent = |epochs| mechanism.spent(&schedule(), epochs);
        let epsilon = |epochs| spent(epochs).epsilon.unwrap_or(f64::INFINITY);
        assert_eq!(epsilon(0), 0.0, "{slot:?}");
        assert!(epsilon(1) > 0.0 && epsilon(1) <= epsilon(10), "{slot:?}");
        assert!(!spent(1).statement.is_empty(), "{slot:?} says what it assumes");
        let Some(guarantee) = spent(10).guarantee else { continue };
        // By default: 2C in one row, in 2 releases an epoch, against a noise of 4C.
        let mu = (10.0f64 * 2.0 * 4.0).sqrt() / 4.0;
        let truth = fet_privacy::accountant::gaussian::epsilon(mu, spent(10).delta);
        let found = epsilon(10);
        assert!(found >= truth && found < 1.01 * truth, "{slot:?}: {found} and {truth}");
        assert_eq!((guarantee.releases, guarantee.epsilon_by_epoch.len()), (20, 10), "{slot:?}");
        assert!(guarantee.epsilon_by_epoch.is_sorted() && guarantee.assumptions.len() >= 4, "{slot:?}");
    }
}
