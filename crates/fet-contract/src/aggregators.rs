//! The laws of an aggregator: width, symmetry and adjoint.

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::aggregator::{Aggregation, Aggregator, Role, SecureSum};
use fet_core::parameters::host;
use fet_core::registry::Slot;
use fet_privacy::secure_sum::{Member, SumId, Units, total, unmask};

use crate::{random, rng};

/// Tests all laws of an aggregator with these settings, for three active parties among three and five.
///
/// # Panics
/// If the aggregator breaks a law.
pub fn check(slot: &Slot<dyn Aggregator>, device: &Device) {
    is_linear(slot, device);
    has_the_stated_width_adjoint_and_symmetry(slot, device);
    spreads_as_the_memory_changes(slot, device);
    keeps_the_position_of_each_part(slot, device);
}

/// Returns representations and similarities of the named parties, which depend only on the names.
pub fn round(names: &[u64], parties: usize, device: &Device) -> (Vec<Tensor<3>>, Aggregation) {
    let parts: Vec<Tensor<3>> = names.iter().map(|&name| random([3, 4, 5], name, device)).collect();
    let round = Aggregation {
        parties,
        active: (0..names.len()).collect(),
        shapes: vec![[3, 4, 5]; names.len()],
        similarities: names.iter().map(|&name| random([3, 4], name + 100, device)).collect(),
    };
    (parts, round)
}

/// Returns an aggregator's memory of the parts, in the aggregator's role.
pub fn memory(aggregator: &dyn Aggregator, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3> {
    match aggregator.role() {
        Role::Combine(open) => open.combine(parts, round),
        Role::Sum(hidden) => hidden.mean(hidden_sum(hidden.form(), parts), round),
    }
}

/// Plays the parties: quantises, masks, sums and unmasks the parts.
fn hidden_sum(form: SecureSum, parts: Vec<Tensor<3>>) -> Tensor<3> {
    let (shape, device) = (parts[0].dims(), parts[0].device());
    let active: Vec<usize> = (0..parts.len()).collect();
    let units = Units::finest(form.bits, form.range * active.len() as f64, 30).expect("there is room");
    let mut members: Vec<Member> =
        active.iter().map(|&member| Member::new(member, &mut rng(member as u64))).collect();
    let keys: Vec<_> = members.iter().map(|member| Some(member.public())).collect();
    let id = sum_id(0, &active, units.bits, form.degree);
    let mut unmaskings = Vec::new();
    let words = members.iter_mut().zip(parts).map(|(member, part)| {
        member.agree(&keys, &[]).expect("keys that were just made");
        let mut words: Vec<u32> = host(part).iter().map(|&x| units.round(x) as u32).collect();
        member.mask(&mut words, &id);
        unmaskings.push(member.unmasking(&id));
        words
    });
    let mut sum = total(words.collect(), units.bits).expect("parts of one shape");
    unmask(&mut sum, &unmaskings, units.bits);
    Tensor::from_data(TensorData::new(units.values(&sum), shape), &device)
}

/// Returns the name of a secure aggregation among these parties.
pub fn sum_id(round: u64, active: &[usize], bits: u32, degree: usize) -> SumId<'_> {
    SumId { round, name: 0, attempt: 0, active, over: [0; 32], bits, degree }
}

fn build(slot: &Slot<dyn Aggregator>) -> Box<dyn Aggregator> {
    slot.build(&()).expect("sound settings")
}

fn close(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
}

/// Tests that the memory of a weighted sum of representations is the weighted sum of their memories. Weights
/// may depend on similarities and on the active parties, but not on the representations.
pub fn is_linear(slot: &Slot<dyn Aggregator>, device: &Device) {
    let aggregator = build(slot);
    // The weights do not add up to 1, so that a constant in the memory fails too.
    for parties in [3, 5] {
        let (one, given) = round(&[1, 2, 3], parties, device);
        let (other, _) = round(&[4, 5, 6], parties, device);
        let mixed = one.iter().zip(&other).map(|(a, b)| a.clone() * 2.0 + b.clone()).collect();
        let memory = |parts| memory(aggregator.as_ref(), parts, &given);
        let (one, other, mixed) = (host(memory(one)), host(memory(other)), host(memory(mixed)));
        let expected: Vec<f32> = one.iter().zip(&other).map(|(a, b)| 2.0 * a + b).collect();
        assert!(close(&mixed, &expected), "{slot:?}: the memory is not linear in the representations");
    }
}

/// Tests the memory's width, its independence of the order of parties, and that `spread` is the adjoint:
/// <A x, g> = <x, A* g>.
pub fn has_the_stated_width_adjoint_and_symmetry(slot: &Slot<dyn Aggregator>, device: &Device) {
    let aggregator = build(slot);
    let combine = |names: &[u64], parties| {
        let (parts, round) = round(names, parties, device);
        memory(aggregator.as_ref(), parts, &round)
    };
    for parties in [3, 5] {
        let width = aggregator.width(parties, 5);
        let memory = combine(&[1, 2, 3], parties);
        assert_eq!(memory.dims(), [3, 4, width], "{slot:?}: the shape of the memory for {parties} parties");
        if width == 5 {
            let reordered = host(combine(&[3, 1, 2], parties));
            assert!(
                close(&host(memory.clone()), &reordered),
                "{slot:?}: the memory depends on the order of parties and is as wide as one representation"
            );
        }
        let dot = |a: &[f32], b: &[f32]| {
            assert_eq!(a.len(), b.len(), "{slot:?}: `spread` gives each part a gradient of its shape");
            a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>()
        };
        let gradient: Tensor<3> = random([3, 4, width], 9, device);
        let left = dot(&host(memory), &host(gradient.clone()));
        let (parts, round) = round(&[1, 2, 3], parties, device);
        let shares = aggregator.spread(gradient, &round).into_parts(round.active.len());
        let right: f64 = shares.into_iter().zip(parts).map(|(g, x)| dot(&host(x), &host(g))).sum();
        assert!(
            (left - right).abs() < 1e-5,
            "{slot:?}: `spread` is not the adjoint of the memory: <A x, g> is {left} and <x, A* g> is {right}"
        );
    }
}

/// An aggregator that keeps the default adjoint.
struct ByDefault<'a>(&'a dyn Aggregator);

impl Aggregator for ByDefault<'_> {
    fn role(&self) -> Role<'_> {
        self.0.role()
    }
}

/// Tests that `spread` equals the gradient of automatic differentiation.
pub fn spreads_as_automatic_differentiation_does(slot: &Slot<dyn Aggregator>, device: &Device) {
    let aggregator = build(slot);
    let (_, round) = round(&[1, 2, 3], 5, device);
    let gradient: Tensor<3> = random([3, 4, aggregator.width(5, 5)], 9, device);
    let own = aggregator.spread(gradient.clone(), &round).into_parts(3);
    let default = ByDefault(aggregator.as_ref()).spread(gradient, &round).into_parts(3);
    for (own, default) in own.into_iter().zip(default) {
        let pairs = host(own).into_iter().zip(host(default));
        assert!(
            pairs.into_iter().all(|(own, default)| (own - default).abs() < 1e-6),
            "{slot:?}: `spread` differs from the gradient of the memory"
        );
    }
}

/// Tests every value of `spread` against the change of the memory by a unit of one value of one part. The memory is linear in the
/// parts, so this change is the derivative. The test needs no automatic differentiation of the aggregator.
pub fn spreads_as_the_memory_changes(slot: &Slot<dyn Aggregator>, device: &Device) {
    let aggregator = build(slot);
    let (parts, round) = round(&[1, 2, 3], 5, device);
    let gradient: Tensor<3> = random([3, 4, aggregator.width(5, 5)], 9, device);
    let spread = aggregator.spread(gradient.clone(), &round).into_parts(parts.len());
    let gradient = host(gradient);
    let shape = parts[0].dims();
    let values: usize = shape.iter().product();
    for (party, spread) in spread.into_iter().enumerate() {
        for (place, stated) in host(spread).into_iter().enumerate() {
            let units = |owner: usize| {
                let unit = |at| f32::from(u8::from(owner == party && at == place));
                Tensor::from_data(TensorData::new((0..values).map(unit).collect(), shape), device)
            };
            let changed = match aggregator.role() {
                Role::Combine(open) => open.combine((0..parts.len()).map(units).collect(), &round),
                Role::Sum(hidden) => hidden.mean(units(party), &round),
            };
            let derivative: f64 =
                host(changed).iter().zip(&gradient).map(|(change, g)| f64::from(change * g)).sum();
            assert!(
                (f64::from(stated) - derivative).abs() < 1e-5,
                "{slot:?}: `spread` gives value {place} of part {party} the gradient {stated}; the memory's derivative is {derivative}"
            );
        }
    }
}

/// Tests the layout that some methods require of an aggregator that keeps parts separate: parts side by side
/// in the parties' order, a part of one position repeated, and zeros for a missing party. Returns true if the
/// aggregator declares this layout.
pub fn keeps_the_position_of_each_part(slot: &Slot<dyn Aggregator>, device: &Device) -> bool {
    let aggregator = build(slot);
    if !aggregator.keeps_parts_apart() {
        return false;
    }
    let parts: [Tensor<3>; 2] = [random([3, 4, 5], 1, device), random([3, 1, 5], 2, device)];
    let round = Aggregation {
        parties: 3,
        active: vec![0, 2],
        shapes: parts.iter().map(|part| part.dims()).collect(),
        similarities: vec![random([3, 4], 3, device), random([3, 1], 4, device)],
    };
    let made = memory(aggregator.as_ref(), parts.to_vec(), &round);
    let place = |party: usize| made.clone().narrow(2, 5 * party, 5);
    assert_eq!(host(place(0)), host(parts[0].clone()), "{slot:?}");
    assert!(host(place(1)).iter().all(|&x| x == 0.0), "{slot:?}: a missing party contributes zeros");
    for position in 0..4 {
        assert_eq!(host(place(2).narrow(1, position, 1)), host(parts[1].clone()), "{slot:?}");
    }
    true
}
