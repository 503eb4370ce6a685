//! Secure sums: the sum is right for any active parties and any dropouts, and a single message reveals
//! nothing.

mod dropout;

use fet_privacy::secure_sum::{Member, PublicKey, SumId, Unmasking, Word, holders, quorum, total, unmask};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn members(count: usize) -> Vec<Member> {
    let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
    let mut members: Vec<Member> = (0..count).map(|index| Member::new(index, &mut rng)).collect();
    let keys: Vec<Option<PublicKey>> = members.iter().map(|member| Some(member.public())).collect();
    members.iter_mut().for_each(|member| member.agree(&keys, b"a run").expect("honest keys"));
    let all: Vec<usize> = (0..count).collect();
    for from in 0..count {
        let sealed = members[from].key_shares(&all, quorum(count, 0));
        for (holder, sealed) in holders(&all, from).into_iter().zip(sealed) {
            members[holder].keep_key_share(from, &sealed, quorum(count, 0)).expect("sealed for this party");
        }
    }
    members
}

fn id(round: u64, active: &[usize], bits: u32, degree: usize) -> SumId<'_> {
    SumId { round, name: 0, attempt: 0, active, over: [7; 32], bits, degree }
}

fn values(parties: usize, length: usize) -> Vec<Vec<i64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    (0..parties).map(|_| (0..length).map(|_| rng.random_range(-1_000..=1_000)).collect()).collect()
}

fn masked<W: Word>(member: &Member, values: &[i64], id: &SumId<'_>) -> Vec<W> {
    let mut words: Vec<W> = values.iter().map(|&value| W::from_signed(value)).collect();
    member.mask(&mut words, id);
    words
}

fn check<W: Word>(members: &[Member], values: &[Vec<i64>], bits: u32, active: &[usize], degree: usize) {
    let id = id(3, active, bits, degree);
    let messages = active.iter().map(|&i| masked::<W>(&members[i], &values[i], &id));
    let mut sum = total(messages.collect(), bits).expect("of one length");
    let unmaskings: Vec<Unmasking> = active.iter().map(|&i| members[i].unmasking(&id)).collect();
    unmask(&mut sum, &unmaskings, bits);
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

/// Tests vectors longer than the chunks of a thread; the masks must not depend on the division into chunks.
#[test]
fn long_vectors_are_summed_too() {
    let (members, values) = (members(3), values(3, 70_001));
    check::<u32>(&members, &values, 32, &[0, 1, 2], 2);
    check::<u64>(&members, &values, 64, &[0, 1, 2], 2);
}

/// Returns χ² over the values of each byte of a word with 255 degrees of freedom, as standard deviations
/// (Wilson-Hilferty).
fn misfit(bytes: impl Iterator<Item = u8>) -> f64 {
    let mut counts = [0u64; 256];
    bytes.for_each(|byte| counts[byte as usize] += 1);
    let expected = counts.iter().sum::<u64>() as f64 / 256.0;
    let statistic: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    ((statistic / 255.0).cbrt() - 1.0 + 2.0 / (9.0 * 255.0)) / (2.0f64 / (9.0 * 255.0)).sqrt()
}

/// 4.75 standard deviations: α = 1e-6 for each of the tests.
const LIMIT: f64 = 4.75;

#[test]
fn one_partys_messages_are_uniform_and_differ_from_round_to_round() {
    let members = members(5);
    // The simplest values: without a mask, every byte would be 0.
    let zeros = vec![0i64; 50_000];
    let active: Vec<usize> = (0..5).collect();
    for degree in [2, 4] {
        let base = id(1, &active, 32, degree);
        let first: Vec<u32> = masked(&members[2], &zeros, &base);
        for byte in 0..4 {
            let misfit = misfit(first.iter().map(|word| word.to_le_bytes()[byte]));
            assert!(misfit < LIMIT, "byte {byte}: {misfit}");
        }
        // A request that differs in any field gets other masks, including its parties, its rows and the form
        // of its sum.
        for other in [
            SumId { round: 2, ..base },
            SumId { name: 1, ..base },
            SumId { attempt: 1, ..base },
            SumId { active: &[0, 2, 3, 4], ..base },
            SumId { over: [8; 32], ..base },
            SumId { bits: 31, ..base },
            SumId { degree: 6, ..base },
        ] {
            let second: Vec<u32> = masked(&members[2], &zeros, &other);
            let difference = first.iter().zip(&second).map(|(a, b)| a.wrapping_sub(*b));
            for byte in 0..3 {
                let misfit = misfit(difference.clone().map(|word| word.to_le_bytes()[byte]));
                assert!(misfit < LIMIT, "{other:?}, byte {byte}: {misfit}");
            }
        }
    }
    // The statistic detects values without a mask.
    assert!(misfit(zeros.iter().map(|_| 0)) > LIMIT);
}

/// A message modulo 2^bits has no higher bits.
#[test]
fn masks_are_modulo_the_bits() {
    let members = members(2);
    let words: Vec<u32> = masked(&members[0], &[0; 20_000], &id(1, &[0, 1], 12, 2));
    assert!(words.iter().all(|word| word >> 12 == 0));
    assert!(misfit(words.iter().map(|word| (word >> 4) as u8)) < LIMIT);
}

/// Fewer than all messages with all unmasking values reveal nothing: partial sums are uniform, including
/// those of two neighbours. The sum of all messages is also uniform if one unmasking value is missing.
#[test]
fn partial_sums_are_uniform() {
    let members = members(6);
    let active: Vec<usize> = (0..6).collect();
    let id = id(1, &active, 32, 2);
    let zeros = vec![0i64; 50_000];
    let messages: Vec<Vec<u32>> = active.iter().map(|&i| masked(&members[i], &zeros, &id)).collect();
    let unmaskings: Vec<Unmasking> = active.iter().map(|&i| members[i].unmasking(&id)).collect();
    let uniform = |messages: &[usize], unmaskings: &[Unmasking]| {
        let mut sum = total(messages.iter().map(|&party| masked(&members[party], &zeros, &id)).collect(), 32)
            .expect("of one length");
        unmask::<u32>(&mut sum, unmaskings, 32);
        let misfit = misfit(sum.iter().map(|word| word.to_le_bytes()[0]));
        assert!(misfit < LIMIT, "{messages:?} with {} unmaskings: {misfit}", unmaskings.len());
    };
    for left_out in 0..6 {
        let rest: Vec<usize> = active.iter().copied().filter(|&party| party != left_out).collect();
        let without: Vec<Unmasking> = rest.iter().map(|&party| unmaskings[party]).collect();
        uniform(&rest, &without);
        uniform(&active, &without);
    }
    let mut all = total(messages, 32).expect("of one length");
    unmask(&mut all, &unmaskings, 32);
    assert_eq!(all, vec![0; 50_000]);
}

/// A relay that shows two parties different keys of a third party, or different contexts, leaves them without
/// a common key. Their masks do not cancel, and the relay's sum is noise.
#[test]
fn parties_that_were_told_different_things_share_no_masks() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut members: Vec<Member> = (0..4).map(|index| Member::new(index, &mut rng)).collect();
    let honest: Vec<Option<PublicKey>> = members.iter().map(|member| Some(member.public())).collect();
    let mut other = honest.clone();
    other[3] = Some(Member::new(3, &mut rng).public());
    let active = [0, 1];
    let id = id(1, &active, 32, 2);
    let mut sum = |first: (&[Option<PublicKey>], &[u8]), second: (&[Option<PublicKey>], &[u8])| {
        members[0].agree(first.0, first.1).expect("sound keys");
        members[1].agree(second.0, second.1).expect("sound keys");
        let messages = active.map(|party| masked::<u32>(&members[party], &[0; 20_000], &id));
        let mut sum = total(messages.to_vec(), 32).expect("of one length");
        unmask(&mut sum, &active.map(|party| members[party].unmasking(&id)), 32);
        misfit(sum.iter().map(|word| word.to_le_bytes()[0]))
    };
    assert!(sum((&honest, b"a run"), (&honest, b"a run")) > LIMIT, "the sum is zero");
    assert!(sum((&honest, b"a run"), (&other, b"a run")) < LIMIT);
    assert!(sum((&honest, b"a run"), (&honest, b"another")) < LIMIT);
}

#[test]
fn a_key_of_small_order_is_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut member = Member::new(0, &mut rng);
    let keys = [Some(member.public()), Some(PublicKey([0; 32]))];
    assert_eq!(member.agree(&keys, b"a run"), Err(1));
    assert_eq!(format!("{member:?}"), "Member(0)", "no secret is shown");
}
