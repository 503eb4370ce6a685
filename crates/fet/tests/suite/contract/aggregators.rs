//! Tests the laws of every aggregator.

use burn::tensor::{Device, Tensor, TensorData};
use fet_contract::aggregators::{self as laws, memory, round, sum_id};
use fet_contract::{all, random};
use fet_core::aggregator::{Aggregation, Aggregator, Role};
use fet_core::parameters::host;
use fet_core::privacy::Form;
use fet_core::registry::Slot;
use fet_federation::secure_aggregation;
use fet_privacy::secure_sum::{
    Attempt, CollectError, Commitment, Member, Message, Parties, Reconstructed, SumId, Unmasking, Word,
    collect,
};

use crate::support::{devices, flex};

/// Parties of a secure aggregation, some without answers.
struct Room<'a> {
    members: &'a [Member],
    vanished: &'a [usize],
    bits: u32,
    degree: usize,
    /// Returns the words of a party among these parties.
    words: &'a dyn Fn(usize, &[usize]) -> Vec<u32>,
}

impl Room<'_> {
    fn id<'b>(&self, attempt: &'b Attempt) -> SumId<'b> {
        SumId { attempt: attempt.number, ..sum_id(7, &attempt.active, self.bits, self.degree) }
    }
}

impl Parties<u32> for Room<'_> {
    type Error = CollectError;

    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<u32>>>, CollectError> {
        let answer = |&party: &usize| {
            let mut words = (self.words)(party, &attempt.active);
            let commitment = self.members[party].mask(&mut words, &self.id(attempt)).commitment();
            (!self.vanished.contains(&party)).then_some(Message { words, commitment })
        };
        Ok(attempt.active.iter().map(answer).collect())
    }

    fn unmaskings(&mut self, attempt: &Attempt) -> Result<Vec<Option<Unmasking>>, CollectError> {
        let id = self.id(attempt);
        Ok(attempt.active.iter().map(|&party| Some(self.members[party].unmasking(&id))).collect())
    }

    fn reconstruct(
        &mut self,
        _: &Attempt,
        _: usize,
        _: &[usize],
        _: &Commitment,
    ) -> Result<Reconstructed, CollectError> {
        panic!("all parties open");
    }
}

/// Calls a law for every aggregator on every device.
fn on_every_device(law: impl Fn(&Slot<dyn Aggregator>, &Device)) {
    for backend in devices() {
        all::<dyn Aggregator>().iter().for_each(|slot| law(slot, &backend.device));
    }
}

#[test]
fn aggregators_are_linear() {
    on_every_device(laws::is_linear);
}

#[test]
fn aggregators_have_the_stated_width_adjoint_and_symmetry() {
    on_every_device(laws::has_the_stated_width_adjoint_and_symmetry);
}

/// An aggregator that hides parts in a sum returns the plain mean of the active parties, for any unasked or
/// dropped parties.
///
/// The tolerance is half a unit for each party of the sum, plus the rounding of the mean.
#[test]
fn secure_sum_gives_the_mean_of_the_answering_parties() {
    const PARTIES: usize = 6;
    let device = flex().device;
    let tensors: Vec<Tensor<3>> = (0..PARTIES as u64).map(|name| random([3, 4, 5], name, &device)).collect();
    let mut members: Vec<Member> =
        (0..PARTIES).map(|index| Member::from_secret(index, [index as u8 + 1; 32])).collect();
    let keys: Vec<_> = members.iter().map(|member| Some(member.public())).collect();
    members.iter_mut().for_each(|member| member.agree(&keys, &[]).expect("keys that were just made"));
    let clipped = Form { bound: 4.0, noise: 2.0, scale: None };
    let forms = [None, Some(clipped), Some(Form { scale: Some(4096.0), ..clipped })];
    // Asked parties, and those of them that do not answer.
    let cases: [(&[usize], &[usize]); 5] = [
        (&[0, 1, 2, 3, 4, 5], &[]),
        (&[1, 4], &[]),
        (&[0, 2, 3, 5], &[]),
        (&[0, 1, 2, 3, 4, 5], &[0]),
        (&[0, 1, 3, 4, 5], &[3, 5]),
    ];
    let mut tried = 0;
    for slot in all::<dyn Aggregator>() {
        let aggregator = slot.build(&()).expect("sound defaults");
        let Role::Sum(hidden) = aggregator.role() else { continue };
        let secure = hidden.form();
        for (form, (asked, vanished)) in forms.iter().flat_map(|form| cases.map(|case| (form, case))) {
            let name = format!("{slot:?}, {form:?}, {asked:?} without {vanished:?}");
            let units = |active: &[usize]| {
                secure_aggregation::units(secure, *form, active.len())
                    .expect("the sum has room for these parties")
            };
            let bits = units(asked).bits;
            let words = |party: usize, active: &[usize]| {
                let own = units(active);
                assert_eq!(own.bits, bits, "{name}");
                let values = host(tensors[party].clone());
                values.iter().map(|&value| u32::from_signed(own.round(value))).collect()
            };
            let mut room = Room { members: &members, vanished, bits, degree: secure.degree, words: &words };
            let collected = collect(asked, 2, bits, &mut room).expect("enough are left");
            let left: Vec<usize> = asked.iter().copied().filter(|party| !vanished.contains(party)).collect();
            assert_eq!(collected.attempt.active, left, "{name}");
            let count = left.len();
            let own = units(&left);
            let sum = TensorData::new(own.values(&collected.sum), [3, 4, 5]);
            let round = Aggregation {
                parties: PARTIES,
                active: left.clone(),
                shapes: vec![[3, 4, 5]; count],
                similarities: Vec::new(),
            };
            let found = host(hidden.mean(Tensor::from_data(sum, &device), &round));
            assert_eq!(found.len(), 60, "{name}");
            for (place, found) in found.into_iter().enumerate() {
                let parts = left.iter().map(|&party| f64::from(host(tensors[party].clone())[place]));
                let mean = parts.sum::<f64>() / count as f64;
                let limit = 0.5 / own.scale + 1e-7;
                let off = (f64::from(found) - mean).abs();
                assert!(off <= limit, "{name}: {found} and {mean}, {off:.1e} above {limit:.1e}");
            }
            tried += 1;
        }
    }
    assert!(tried >= 15, "no aggregator hides parts in a sum");
}

#[test]
fn means_of_equal_parts_equal_the_part() {
    let device = flex().device;
    for kind in ["average", "secure-average", "similarity-weighted"] {
        let slot = Slot::<dyn Aggregator>::with_defaults(kind).expect("sound defaults");
        let (parts, round) = round(&[1, 1, 1], 3, &device);
        let expected = host(parts[0].clone());
        let mean = host(memory(slot.build(&()).expect("sound defaults").as_ref(), parts, &round));
        assert!(mean.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{kind}");
    }
}

#[test]
fn concatenation_keeps_the_position_of_each_part() {
    let device = flex().device;
    let kept = all::<dyn Aggregator>()
        .iter()
        .filter(|slot| laws::keeps_the_position_of_each_part(slot, &device))
        .count();
    assert!(kept > 0, "\"concat\" does");
}

#[test]
fn repeats_a_single_position_next_to_longer_parts() {
    let device = flex().device;
    let concat =
        Slot::<dyn Aggregator>::with_defaults("concat").expect("sound defaults").build(&()).expect("sound");
    let (long, short): (Tensor<3>, Tensor<3>) =
        (random([2, 3, 2], 1, &device), random([2, 1, 4], 2, &device));
    let round = Aggregation {
        parties: 3,
        active: vec![0, 2],
        shapes: vec![[2, 3, 2], [2, 1, 4]],
        similarities: Vec::new(),
    };
    let memory = memory(concat.as_ref(), vec![long, short.clone()], &round);
    assert_eq!(memory.dims(), [2, 3, 2 + 2 + 4]);
    for position in 0..3 {
        assert_eq!(host(memory.clone().narrow(1, position, 1).narrow(2, 4, 4)), host(short.clone()));
    }
    let shares = concat.spread(memory, &round).into_parts(round.active.len());
    assert_eq!(shares[1].dims(), [2, 1, 4]);
    let tripled = host(short).iter().map(|x| 3.0 * x).collect::<Vec<_>>();
    assert!(host(shares[1].clone()).iter().zip(&tripled).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn every_adjoint_equals_the_differentiated_adjoint() {
    on_every_device(laws::spreads_as_automatic_differentiation_does);
}

#[test]
fn every_adjoint_equals_the_change_of_the_memory() {
    on_every_device(laws::spreads_as_the_memory_changes);
}
