//! Secure sums: the sum is right, whoever takes part and whoever vanishes, and a message by itself says nothing.

use fet_privacy::secure_sum::{
    Attempt, BackupError, CollectError, Commitment, Evaluation, Member, Message, Opening, Parties, PublicKey,
    Recovered, SumId, Word, collect, holders, quorum, recover, total, unmask, withstands,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn members(count: usize) -> Vec<Member> {
    let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
    let mut members: Vec<Member> = (0..count).map(|index| Member::new(index, &mut rng)).collect();
    let keys: Vec<Option<PublicKey>> = members.iter().map(|member| Some(member.public())).collect();
    members.iter_mut().for_each(|member| member.agree(&keys, b"a run").expect("honest keys"));
    let all: Vec<usize> = (0..count).collect();
    for from in 0..count {
        let sealed = members[from].backups(&all, quorum(count, 0));
        for (holder, sealed) in holders(&all, from).into_iter().zip(sealed) {
            members[holder].keep_backup(from, &sealed, quorum(count, 0)).expect("sealed for this party");
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
    let openings: Vec<Opening> = active.iter().map(|&i| members[i].opening(&id)).collect();
    unmask(&mut sum, &openings, bits);
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
        let base = id(1, &active, 32, degree);
        let first: Vec<u32> = masked(&members[2], &zeros, &base);
        for byte in 0..4 {
            let misfit = misfit(first.iter().map(|word| word.to_le_bytes()[byte]));
            assert!(misfit < LIMIT, "byte {byte}: {misfit}");
        }
        // Whatever a request differs in, its masks are others: also the parties, the rows and the form of the sum.
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
    // What the statistic sees where nothing is masked.
    assert!(misfit(zeros.iter().map(|_| 0)) > LIMIT);
}

/// A message of fewer bits has no more than them.
#[test]
fn masks_are_modulo_the_bits() {
    let members = members(2);
    let words: Vec<u32> = masked(&members[0], &[0; 20_000], &id(1, &[0, 1], 12, 2));
    assert!(words.iter().all(|word| word >> 12 == 0));
    assert!(misfit(words.iter().map(|word| (word >> 4) as u8)) < LIMIT);
}

/// Nothing is learned from less than all messages with all openings: partial sums are uniform, also of two neighbours,
/// and so is the sum of all messages where one opening is missing.
#[test]
fn partial_sums_are_uniform() {
    let members = members(6);
    let active: Vec<usize> = (0..6).collect();
    let id = id(1, &active, 32, 2);
    let zeros = vec![0i64; 50_000];
    let messages: Vec<Vec<u32>> = active.iter().map(|&i| masked(&members[i], &zeros, &id)).collect();
    let openings: Vec<Opening> = active.iter().map(|&i| members[i].opening(&id)).collect();
    let uniform = |messages: &[usize], openings: &[Opening]| {
        let mut sum = total(messages.iter().map(|&party| masked(&members[party], &zeros, &id)).collect(), 32)
            .expect("of one length");
        unmask::<u32>(&mut sum, openings, 32);
        let misfit = misfit(sum.iter().map(|word| word.to_le_bytes()[0]));
        assert!(misfit < LIMIT, "{messages:?} with {} openings: {misfit}", openings.len());
    };
    for left_out in 0..6 {
        let rest: Vec<usize> = active.iter().copied().filter(|&party| party != left_out).collect();
        let without: Vec<Opening> = rest.iter().map(|&party| openings[party]).collect();
        uniform(&rest, &without);
        uniform(&active, &without);
    }
    let mut all = total(messages, 32).expect("of one length");
    unmask(&mut all, &openings, 32);
    assert_eq!(all, vec![0; 50_000]);
}

/// When a party answers nothing any more.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Vanishes {
    Never,
    /// Before it sends its message of an attempt.
    Before(u32),
    /// After its message of an attempt, before it opens it.
    Within(u32),
    /// Never, but it opens its message of an attempt wrongly.
    Lies,
}

/// Parties as a receiver reaches them. Each opens one attempt at most, as honest parties do.
struct Room<'a> {
    members: &'a [Member],
    values: &'a [Vec<i64>],
    vanishes: Vec<Vanishes>,
    opened: Vec<Option<u32>>,
    degree: usize,
    round: u64,
    messages: Vec<(Attempt, Vec<Option<Message<u32>>>)>,
}

impl Room<'_> {
    fn id<'b>(&self, attempt: &'b Attempt) -> SumId<'b> {
        let id = id(self.round, &attempt.active, 32, self.degree);
        SumId { attempt: attempt.number, ..id }
    }

    fn sends(&self, party: usize, number: u32) -> bool {
        match self.vanishes[party] {
            Vanishes::Never | Vanishes::Lies => true,
            Vanishes::Before(attempt) => number < attempt,
            Vanishes::Within(attempt) => number <= attempt,
        }
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Collect(#[from] CollectError),
    #[error(transparent)]
    Backup(#[from] BackupError),
}

impl Parties<u32> for Room<'_> {
    type Error = Failed;

    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<u32>>>, Failed> {
        let id = self.id(attempt);
        let message = |&party: &usize| {
            let sends = self.sends(party, attempt.number);
            sends.then(|| Message {
                words: masked(&self.members[party], &self.values[party], &id),
                commitment: self.members[party].opening(&id).commitment(),
            })
        };
        let messages: Vec<_> = attempt.active.iter().map(message).collect();
        self.messages.push((attempt.clone(), messages.clone()));
        Ok(messages)
    }

    fn opened(&mut self, attempt: &Attempt) -> Result<Vec<Option<Opening>>, Failed> {
        let id = self.id(attempt);
        for &party in &attempt.active {
            assert_eq!(self.opened[party].replace(attempt.number), None, "party {party} opens once");
        }
        let open = |&party: &usize| {
            let here =
                self.sends(party, attempt.number) && self.vanishes[party] != Vanishes::Within(attempt.number);
            let opening = self.members[party].opening(&id);
            let lies = self.vanishes[party] == Vanishes::Lies;
            here.then_some(if lies { Opening([3; 32]) } else { opening })
        };
        Ok(attempt.active.iter().map(open).collect())
    }

    fn recovered(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Recovered, Failed> {
        let id = self.id(attempt);
        let shares = shares(self.members, others, party, &id);
        Ok(recover(party, quorum(self.members.len(), 0), &shares, commitment, &id)?)
    }
}

fn shares(members: &[Member], from: &[usize], party: usize, id: &SumId<'_>) -> Vec<(usize, Evaluation)> {
    let share = |&holder: &usize| Some((holder, members[holder].evaluation(party, id)?));
    from.iter().filter_map(share).collect()
}

fn room<'a>(members: &'a [Member], values: &'a [Vec<i64>], vanishes: Vec<Vanishes>, round: u64) -> Room<'a> {
    let opened = vec![None; members.len()];
    Room { members, values, vanishes, opened, degree: 2, round, messages: Vec::new() }
}

fn expect_sum(found: &[u32], values: &[Vec<i64>], of: &[usize]) {
    for (place, word) in found.iter().enumerate() {
        let expected: i64 = of.iter().map(|&party| values[party][place]).sum();
        assert_eq!(word.to_signed(32), expected);
    }
}

#[test]
fn a_party_that_vanishes_is_left_out_of_a_round_done_again() {
    let (members, values) = (members(6), values(6, 11));
    let mut vanishes = vec![Vanishes::Never; 6];
    vanishes[3] = Vanishes::Before(0);
    vanishes[0] = Vanishes::Before(1);
    let mut room = room(&members, &values, vanishes, 5);
    let collected = collect(&[0, 1, 2, 3, 4, 5], 4, 32, &mut room).expect("four are left");
    assert_eq!(collected.attempt, Attempt { number: 2, active: vec![1, 2, 4, 5] });
    expect_sum(&collected.sum, &values, &[1, 2, 4, 5]);
    // What a party sent in one attempt tells nothing about what it sent in the next: no mask is used twice.
    let seen = room.messages;
    assert_eq!(seen.len(), 3);
    let sent = |attempt: usize, party: usize| {
        let place = seen[attempt].0.active.iter().position(|&other| other == party).expect("active");
        seen[attempt].1[place].clone().expect("it answered").words
    };
    assert_ne!(sent(0, 1), sent(1, 1));
    assert_ne!(sent(1, 1), sent(2, 1));
}

/// Every subset of five parties vanishes, before its message or within the opening: there is the exact sum of those whose
/// messages came, or a reason why there is none.
#[test]
fn whoever_vanishes_at_whatever_moment_the_sum_is_exact_or_there_is_none() {
    let (members, values) = (members(5), values(5, 3));
    let all: Vec<usize> = (0..5).collect();
    let (mut sums, mut few, mut unopened) = (0, 0, 0);
    for code in 0..3usize.pow(5) {
        let moment = |party: u32| match code / 3usize.pow(party) % 3 {
            0 => Vanishes::Never,
            1 => Vanishes::Before(0),
            _ => Vanishes::Within(1.min(u32::from(code_has_before(code)))),
        };
        let vanishes: Vec<Vanishes> = (0..5).map(moment).collect();
        let sent: Vec<usize> =
            all.iter().copied().filter(|&party| vanishes[party] != Vanishes::Before(0)).collect();
        let opened = vanishes.iter().filter(|moment| **moment == Vanishes::Never).count();
        let mut room = room(&members, &values, vanishes.clone(), code as u64);
        match collect(&all, quorum(5, 0), 32, &mut room) {
            Ok(collected) => {
                assert_eq!(collected.attempt.active, sent, "{vanishes:?}");
                expect_sum(&collected.sum, &values, &sent);
                assert_eq!(collected.lost.len(), sent.len() - opened);
                assert!(opened == sent.len() || opened >= quorum(5, 0));
                assert_eq!(collected.wrong, []);
                sums += 1;
            }
            Err(Failed::Collect(CollectError::TooFew { left, .. })) => {
                assert_eq!(left, sent.len(), "{vanishes:?}");
                assert!(left < 3);
                few += 1;
            }
            Err(Failed::Backup(BackupError::TooFew { found, needed, .. })) => {
                assert_eq!((found, needed), (opened, 3), "{vanishes:?}");
                assert!(found < needed);
                unopened += 1;
            }
            Err(other) => panic!("{vanishes:?}: {other}"),
        }
    }
    assert!(sums > 50 && few > 20 && unopened > 30, "{sums} sums, {few} with too few, {unopened} unopened");
}

/// Whether some party vanishes before its message, so that there is a second attempt.
fn code_has_before(code: usize) -> bool {
    (0..5).any(|party| code / 3usize.pow(party) % 3 == 1)
}

#[test]
fn backups_are_for_their_holders_and_open_one_attempt() {
    let members = members(7);
    let all: Vec<usize> = (0..7).collect();
    let first = id(9, &all, 32, 4);
    let again = SumId { attempt: 1, active: &all[..6], ..first };
    let (opening, needed) = (members[6].opening(&first), quorum(7, 0));
    assert_eq!(needed, 4);
    let sound = shares(&members, &all, 6, &first);
    assert_eq!(sound.len(), 6, "all others hold one");
    let open = |shares: &[(usize, Evaluation)]| recover(6, needed, shares, &opening.commitment(), &first);
    let whole = Ok(Recovered { opening, wrong: vec![] });
    assert_eq!(open(&sound), whole);
    assert_eq!(open(&sound[2..]), whole, "any four");
    let few = |found| Err(BackupError::TooFew { party: 7, found, needed: 4 });
    assert_eq!(open(&sound[..3]), few(3));
    // One holder twice is one, its own party none, and bytes that are no point of the group nothing.
    assert_eq!(open(&[&sound[..3], &sound[..3], &[(6, sound[3].1), (5, [0xff; 32])]].concat()), few(3));
    // Shares for another attempt open another.
    let other = open(&shares(&members, &all, 6, &again));
    assert_eq!(other, Err(BackupError::Wrong { party: 7, found: 6, needed: 4, withstood: 2 }));
    let mixed = [&sound[..3], &shares(&members, &all[3..], 6, &again)[..]].concat();
    assert!(
        matches!(open(&mixed), Err(BackupError::Wrong { .. })),
        "three of four and three of another attempt"
    );
    // A share that was sealed for another party, by another, or for another threshold is none for this one.
    let mut third = self::members(7).swap_remove(3);
    let sealed = members[6].backups(&all, 4);
    let place = |holder: usize| holders(&all, 6).iter().position(|&other| other == holder).expect("a holder");
    assert_eq!(third.keep_backup(6, &sealed[place(3)], 4), Ok(()));
    for (from, sealed, needed) in [
        (6, &sealed[place(2)], 4),
        (5, &sealed[place(3)], 4),
        (3, &sealed[place(3)], 4),
        (6, &sealed[place(3)], 5),
    ] {
        assert_eq!(third.keep_backup(from, sealed, needed), Err(BackupError::Unreadable { from: from + 1 }));
    }
}

/// Every set of holders lies: where no more do than are withstood there is the right opening, and the liars are named.
#[test]
fn wrong_shares_are_left_out_and_their_holders_named() {
    let (mut right, mut none) = (0, 0);
    for count in [4, 5, 6, 7] {
        let members = members(count);
        let all: Vec<usize> = (0..count).collect();
        let id = id(2, &all, 32, 2);
        let (opening, needed) = (members[0].opening(&id), quorum(count, 0));
        let sound = shares(&members, &all, 0, &id);
        let withstood = withstands(sound.len(), needed);
        for lying in 0u32..1 << sound.len() {
            let mut shares = sound.clone();
            let liars: Vec<usize> = (0..shares.len()).filter(|share| lying >> share & 1 == 1).collect();
            for &liar in &liars {
                // A sound point, but of another party: only the commitment tells.
                shares[liar].1 = members[shares[liar].0]
                    .evaluation((shares[liar].0 % (count - 1)) + 1, &id)
                    .unwrap_or_else(|| members[0].evaluation(1, &id).expect("it holds it"));
            }
            match recover(0, needed, &shares, &opening.commitment(), &id) {
                Ok(recovered) => {
                    assert_eq!(recovered.opening, opening);
                    assert!(liars.len() <= sound.len() - needed);
                    let first_lie = liars.first().is_some_and(|&liar| liar < needed);
                    let named: Vec<usize> = liars.iter().map(|&liar| shares[liar].0).collect();
                    assert_eq!(recovered.wrong, if first_lie { named } else { vec![] });
                    right += 1;
                }
                Err(error) => {
                    assert!(matches!(error, BackupError::Wrong { .. }), "{error}");
                    assert!(liars.len() > withstood, "{count}: {liars:?}");
                    none += 1;
                }
            }
        }
    }
    assert!(right > 20 && none > 50, "{right} opened, {none} not");
    // Of a hundred parties, wherever five lie.
    let members = members(100);
    let all: Vec<usize> = (0..100).collect();
    let id = id(2, &all, 32, 8);
    let mut shares = shares(&members, &all, 0, &id);
    assert_eq!(withstands(99, quorum(100, 0)), 5);
    for liar in [0, 17, 40, 41, 98] {
        shares[liar].1 = members[2].evaluation(1, &id).expect("it holds it");
    }
    let opening = members[0].opening(&id);
    let recovered =
        recover(0, quorum(100, 0), &shares, &opening.commitment(), &id).expect("five are withstood");
    assert_eq!(recovered, Recovered { opening, wrong: vec![1, 18, 41, 42, 99] });
}

/// A party that opens its message wrongly is replaced like one that vanished, and named; if nobody can replace it, it is named
/// too.
#[test]
fn a_wrong_opening_is_noticed_and_its_party_named() {
    let (members, values) = (members(5), values(5, 3));
    let all: Vec<usize> = (0..5).collect();
    let mut vanishes = vec![Vanishes::Never; 5];
    vanishes[2] = Vanishes::Lies;
    let collected =
        collect(&all, 3, 32, &mut room(&members, &values, vanishes.clone(), 1)).expect("four are left");
    expect_sum(&collected.sum, &values, &all);
    assert_eq!((collected.lost, collected.wrong), (vec![2], vec![2]));
    vanishes[0] = Vanishes::Within(0);
    vanishes[4] = Vanishes::Within(0);
    let refused = collect(&all, 3, 32, &mut room(&members, &values, vanishes, 2));
    let few = BackupError::TooFew { party: 1, found: 2, needed: 3 };
    assert_eq!(refused, Err(Failed::Backup(few)), "party 1 vanished, and two are left");
    let (two, pair) = (self::members(2), [0, 1]);
    let mut lies = room(&two, &values, vec![Vanishes::Never, Vanishes::Lies], 3);
    assert_eq!(collect(&pair, 2, 32, &mut lies), Err(CollectError::Opening { party: 2 }.into()));
}

/// A relay that shows two parties different keys of a third, or different contexts, leaves them without a common key: their
/// masks do not cancel, and what it sums is noise.
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
        unmask(&mut sum, &active.map(|party| members[party].opening(&id)), 32);
        misfit(sum.iter().map(|word| word.to_le_bytes()[0]))
    };
    assert!(sum((&honest, b"a run"), (&honest, b"a run")) > LIMIT, "the zeros that were summed");
    assert!(sum((&honest, b"a run"), (&other, b"a run")) < LIMIT);
    assert!(sum((&honest, b"a run"), (&honest, b"another")) < LIMIT);
}

#[test]
fn sums_that_would_hide_nothing_are_refused() {
    let (members, values) = (members(5), values(5, 3));
    let mut vanishes = vec![Vanishes::Never; 5];
    vanishes[1] = Vanishes::Before(0);
    let mut alone = room(&members, &values, vanishes, 1);
    let refused = collect::<u32, _>(&[0, 1], 0, 32, &mut alone);
    assert_eq!(refused, Err(CollectError::TooFew { left: 1, of: 2, needed: 2 }.into()));
    let refused = collect::<u32, _>(&[4], 0, 32, &mut alone);
    assert_eq!(refused, Err(CollectError::TooFew { left: 1, of: 1, needed: 2 }.into()));
    assert_eq!(total(vec![vec![1u32, 2], vec![1]], 32), Err(CollectError::Length { expected: 2, found: 1 }));
}

#[test]
fn a_key_of_small_order_is_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut member = Member::new(0, &mut rng);
    let keys = [Some(member.public()), Some(PublicKey([0; 32]))];
    assert_eq!(member.agree(&keys, b"a run"), Err(1));
    assert_eq!(format!("{member:?}"), "Member(0)", "no secret is shown");
}
