//! Secure sums: the sum is right, whoever takes part and whoever vanishes, and a message by itself says nothing.

use fet_privacy::secure_sum::{Attempt, CollectError, MaskId, Member, PublicKey, Word, collect, total};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn members(count: usize) -> Vec<Member> {
    let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
    let mut members: Vec<Member> = (0..count).map(|index| Member::new(index, &mut rng)).collect();
    let keys: Vec<PublicKey> = members.iter().map(Member::public).collect();
    members.iter_mut().for_each(|member| member.agree(&keys).expect("honest keys"));
    members
}

fn id(round: u64) -> MaskId {
    MaskId { round, name: 0, attempt: 0 }
}

fn values(parties: usize, length: usize) -> Vec<Vec<i64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    (0..parties).map(|_| (0..length).map(|_| rng.random_range(-1_000..=1_000)).collect()).collect()
}

fn masked<W: Word>(
    member: &Member,
    values: &[i64],
    bits: u32,
    active: &[usize],
    degree: usize,
    id: MaskId,
) -> Vec<W> {
    let mut words: Vec<W> = values.iter().map(|&value| W::from_signed(value)).collect();
    member.mask(&mut words, bits, active, degree, id);
    words
}

fn check<W: Word>(members: &[Member], values: &[Vec<i64>], bits: u32, active: &[usize], degree: usize) {
    let messages = active.iter().map(|&i| masked::<W>(&members[i], &values[i], bits, active, degree, id(3)));
    let sum = total(messages.collect(), bits).expect("of one length");
    for (place, word) in sum.iter().enumerate() {
        let expected: i64 = active.iter().map(|&party| values[party][place]).sum();
        assert_eq!(word.to_signed(bits), expected, "{} parties, degree {degree}, {bits} bits", active.len());
    }
}

#[test]
fn the_sum_is_the_plain_sum_for_every_number_of_parties() {
    let (members, values) = (members(100), values(100, 7));
    for count in 2..=100 {
        let active: Vec<usize> = (0..count).collect();
        for degree in [2, 8] {
            check::<u32>(&members, &values, 32, &active, degree);
        }
    }
    let active: Vec<usize> = (0..100).collect();
    check::<u32>(&members, &values, 18, &active, 8);
    check::<u64>(&members, &values, 64, &active, 8);
    check::<u64>(&members, &values, 47, &active, 200);
}

#[test]
fn whichever_parties_are_left_out_the_sum_is_theirs_that_stay() {
    let (members, values) = (members(9), values(9, 5));
    for kept in 0u32..1 << 9 {
        let active: Vec<usize> = (0..9).filter(|party| kept >> party & 1 == 1).collect();
        if active.len() >= 2 {
            check::<u32>(&members, &values, 32, &active, 4);
        }
    }
}

/// Vectors longer than the portions that threads take, whose masks must not depend on the division.
#[test]
fn long_vectors_are_summed_too() {
    let (members, values) = (members(3), values(3, 70_001));
    check::<u32>(&members, &values, 32, &[0, 1, 2], 2);
    check::<u64>(&members, &values, 64, &[0, 1, 2], 2);
}

/// χ² over the values of each byte of a word: 255 degrees of freedom, as standard deviations (Wilson-Hilferty).
fn misfit(bytes: impl Iterator<Item = u8>) -> f64 {
    let mut counts = [0u64; 256];
    bytes.for_each(|byte| counts[byte as usize] += 1);
    let expected = counts.iter().sum::<u64>() as f64 / 256.0;
    let statistic: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    ((statistic / 255.0).cbrt() - 1.0 + 2.0 / (9.0 * 255.0)) / (2.0f64 / (9.0 * 255.0)).sqrt()
}

/// α = 1e-6 for each of the tests: 4.75 standard deviations.
const LIMIT: f64 = 4.75;

#[test]
fn one_partys_messages_are_uniform_and_differ_from_round_to_round() {
    let members = members(5);
    // The plainest of values: without a mask every byte would be 0.
    let zeros = vec![0i64; 50_000];
    let active: Vec<usize> = (0..5).collect();
    for degree in [2, 4] {
        let first: Vec<u32> = masked(&members[2], &zeros, 32, &active, degree, id(1));
        for byte in 0..4 {
            let misfit = misfit(first.iter().map(|word| word.to_le_bytes()[byte]));
            assert!(misfit < LIMIT, "byte {byte}: {misfit}");
        }
        for other in [id(2), MaskId { name: 1, ..id(1) }, MaskId { attempt: 1, ..id(1) }] {
            let second: Vec<u32> = masked(&members[2], &zeros, 32, &active, degree, other);
            let difference = first.iter().zip(&second).map(|(a, b)| a.wrapping_sub(*b));
            for byte in 0..4 {
                let misfit = misfit(difference.clone().map(|word| word.to_le_bytes()[byte]));
                assert!(misfit < LIMIT, "{other:?}, byte {byte}: {misfit}");
            }
        }
    }
    // What the statistic sees where nothing is masked.
    assert!(misfit(zeros.iter().map(|_| 0)) > LIMIT);
}

/// A message of fewer bits has no more than them.
#[test]
fn masks_are_modulo_the_bits() {
    let members = members(2);
    let words: Vec<u32> = masked(&members[0], &[0; 20_000], 12, &[0, 1], 2, id(1));
    assert!(words.iter().all(|word| word >> 12 == 0));
    assert!(misfit(words.iter().map(|word| (word >> 4) as u8)) < LIMIT);
}

/// Two messages of parties that share a mask reveal their sum, if nobody else's mask is in them; one partial sum short
/// of all parties reveals nothing.
#[test]
fn partial_sums_are_uniform() {
    let members = members(6);
    let active: Vec<usize> = (0..6).collect();
    let zeros = vec![0i64; 50_000];
    let messages: Vec<Vec<u32>> =
        active.iter().map(|&i| masked(&members[i], &zeros, 32, &active, 2, id(1))).collect();
    for left_out in 0..6 {
        let rest = messages.iter().enumerate().filter(|(party, _)| *party != left_out);
        let sum = total(rest.map(|(_, message)| message.clone()).collect(), 32).expect("of one length");
        let misfit = misfit(sum.iter().map(|word| word.to_le_bytes()[0]));
        assert!(misfit < LIMIT, "without {left_out}: {misfit}");
    }
    assert_eq!(total(messages, 32), Ok(vec![0; 50_000]));
}

#[test]
fn a_party_that_vanishes_is_left_out_of_a_round_done_again() {
    let (members, values) = (members(6), values(6, 11));
    let mut seen: Vec<(Attempt, Vec<Option<Vec<u32>>>)> = Vec::new();
    let ask = |attempt: &Attempt| {
        let id = MaskId { attempt: attempt.number, ..id(5) };
        // Party 3 answers nothing, and then party 0 neither.
        let here = |party: usize| party != 3 && !(party == 0 && attempt.number == 1);
        let message = |&party: &usize| {
            here(party).then(|| masked::<u32>(&members[party], &values[party], 32, &attempt.active, 2, id))
        };
        let messages: Vec<_> = attempt.active.iter().map(message).collect();
        seen.push((attempt.clone(), messages.clone()));
        Ok::<_, CollectError>(messages)
    };
    let collected = collect(&[0, 1, 2, 3, 4, 5], 32, ask).expect("four are left");
    assert_eq!(collected.attempt, Attempt { number: 2, active: vec![1, 2, 4, 5] });
    for (place, word) in collected.sum.iter().enumerate() {
        let expected: i64 = [1, 2, 4, 5].iter().map(|&party: &usize| values[party][place]).sum();
        assert_eq!(word.to_signed(32), expected);
    }
    // What a party sent in one attempt tells nothing about what it sent in the next: no mask is used twice.
    assert_eq!(seen.len(), 3);
    let sent = |attempt: usize, party: usize| {
        let place = seen[attempt].0.active.iter().position(|&other| other == party).expect("active");
        seen[attempt].1[place].clone().expect("it answered")
    };
    assert_ne!(sent(0, 1), sent(1, 1));
    assert_ne!(sent(1, 1), sent(2, 1));
}

#[test]
fn sums_that_would_hide_nothing_are_refused() {
    let ask = |_: &Attempt| Ok::<_, CollectError>(vec![Some(vec![1u32]), None]);
    assert_eq!(collect(&[0, 1], 32, ask), Err(CollectError::TooFew { left: 1, of: 2 }));
    let ask = |_: &Attempt| Ok::<_, CollectError>(vec![Some(vec![1u32])]);
    assert_eq!(collect(&[4], 32, ask), Err(CollectError::TooFew { left: 1, of: 1 }));
    assert_eq!(total(vec![vec![1u32, 2], vec![1]], 32), Err(CollectError::Length { expected: 2, found: 1 }));
}

#[test]
fn a_key_of_small_order_is_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut member = Member::new(0, &mut rng);
    let keys = [member.public(), PublicKey([0; 32])];
    assert_eq!(member.agree(&keys), Err(1));
    assert_eq!(format!("{member:?}"), "Member(0)", "no secret is shown");
}
