//! Parties that drop out at any moment, and parties that send wrong data.

use fet_privacy::secure_sum::{
    Attempt, CollectError, Commitment, Evaluation, KeyShareError, Member, Message, Parties, Reconstructed,
    SumId, Unmasking, Word, collect, holders, quorum, reconstruct, total, withstands,
};

use super::{id, masked, members, values};

/// Moment at which a party stops answering.
#[derive(Debug, Clone, Copy, PartialEq)]
enum DropoutMoment {
    Never,
    /// Before it sends its message of an attempt.
    Before(u32),
    /// After its message of an attempt, before it unmasks the message.
    Within(u32),
    /// Never; the party unmasks its message of an attempt wrongly instead.
    Lies,
}

/// Parties in the view of a receiver. Each party unmasks at most one attempt, as honest parties do.
struct PartyGroup<'a> {
    members: &'a [Member],
    values: &'a [Vec<i64>],
    moments: Vec<DropoutMoment>,
    unmasked: Vec<Option<u32>>,
    degree: usize,
    round: u64,
    messages: Vec<(Attempt, Vec<Option<Message<u32>>>)>,
}

impl PartyGroup<'_> {
    fn id<'b>(&self, attempt: &'b Attempt) -> SumId<'b> {
        let id = id(self.round, &attempt.active, 32, self.degree);
        SumId { attempt: attempt.number, ..id }
    }

    fn sends(&self, party: usize, number: u32) -> bool {
        match self.moments[party] {
            DropoutMoment::Never | DropoutMoment::Lies => true,
            DropoutMoment::Before(attempt) => number < attempt,
            DropoutMoment::Within(attempt) => number <= attempt,
        }
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Collect(#[from] CollectError),
    #[error(transparent)]
    KeyShare(#[from] KeyShareError),
}

impl Parties<u32> for PartyGroup<'_> {
    type Error = Failed;

    fn masked(&mut self, attempt: &Attempt) -> Result<Vec<Option<Message<u32>>>, Failed> {
        let id = self.id(attempt);
        let message = |&party: &usize| {
            let sends = self.sends(party, attempt.number);
            sends.then(|| Message {
                words: masked(&self.members[party], &self.values[party], &id),
                commitment: self.members[party].unmasking(&id).commitment(),
            })
        };
        let messages: Vec<_> = attempt.active.iter().map(message).collect();
        self.messages.push((attempt.clone(), messages.clone()));
        Ok(messages)
    }

    fn unmaskings(&mut self, attempt: &Attempt) -> Result<Vec<Option<Unmasking>>, Failed> {
        let id = self.id(attempt);
        for &party in &attempt.active {
            assert_eq!(self.unmasked[party].replace(attempt.number), None, "party {party} unmasks once");
        }
        let unmasking = |&party: &usize| {
            let here = self.sends(party, attempt.number)
                && self.moments[party] != DropoutMoment::Within(attempt.number);
            let unmasking = self.members[party].unmasking(&id);
            let lies = self.moments[party] == DropoutMoment::Lies;
            here.then_some(if lies { Unmasking([3; 32]) } else { unmasking })
        };
        Ok(attempt.active.iter().map(unmasking).collect())
    }

    fn reconstruct(
        &mut self,
        attempt: &Attempt,
        party: usize,
        others: &[usize],
        commitment: &Commitment,
    ) -> Result<Reconstructed, Failed> {
        let id = self.id(attempt);
        let shares = shares(self.members, others, party, &id);
        Ok(reconstruct(party, quorum(self.members.len(), 0), &shares, commitment, &id)?)
    }
}

fn shares(members: &[Member], from: &[usize], party: usize, id: &SumId<'_>) -> Vec<(usize, Evaluation)> {
    let share = |&holder: &usize| Some((holder, members[holder].evaluation(party, id)?));
    from.iter().filter_map(share).collect()
}

fn group<'a>(
    members: &'a [Member],
    values: &'a [Vec<i64>],
    moments: Vec<DropoutMoment>,
    round: u64,
) -> PartyGroup<'a> {
    let unmasked = vec![None; members.len()];
    PartyGroup { members, values, moments, unmasked, degree: 2, round, messages: Vec::new() }
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
    let mut moments = vec![DropoutMoment::Never; 6];
    moments[3] = DropoutMoment::Before(0);
    moments[0] = DropoutMoment::Before(1);
    let mut group = group(&members, &values, moments, 5);
    let collected = collect(&[0, 1, 2, 3, 4, 5], 4, 32, &mut group).expect("four are left");
    assert_eq!(collected.attempt, Attempt { number: 2, active: vec![1, 2, 4, 5] });
    expect_sum(&collected.sum, &values, &[1, 2, 4, 5]);
    // A party's message of one attempt reveals nothing about its message of the next: no mask is used twice.
    let seen = group.messages;
    assert_eq!(seen.len(), 3);
    let sent = |attempt: usize, party: usize| {
        let place = seen[attempt].0.active.iter().position(|&other| other == party).expect("active");
        seen[attempt].1[place].clone().expect("it answered").words
    };
    assert_ne!(sent(0, 1), sent(1, 1));
    assert_ne!(sent(1, 1), sent(2, 1));
}

/// Every subset of five parties drops out, before their messages or during the unmasking. The result is the
/// exact sum of the parties whose messages arrived, or an error that says why there is none.
#[test]
fn whoever_vanishes_at_whatever_moment_the_sum_is_exact_or_there_is_none() {
    let (members, values) = (members(5), values(5, 3));
    let all: Vec<usize> = (0..5).collect();
    let (mut sums, mut few, mut still_masked) = (0, 0, 0);
    for code in 0..3usize.pow(5) {
        let moment = |party: u32| match code / 3usize.pow(party) % 3 {
            0 => DropoutMoment::Never,
            1 => DropoutMoment::Before(0),
            _ => DropoutMoment::Within(1.min(u32::from(code_has_before(code)))),
        };
        let moments: Vec<DropoutMoment> = (0..5).map(moment).collect();
        let sent: Vec<usize> =
            all.iter().copied().filter(|&party| moments[party] != DropoutMoment::Before(0)).collect();
        let unmasked = moments.iter().filter(|moment| **moment == DropoutMoment::Never).count();
        let mut group = group(&members, &values, moments.clone(), code as u64);
        match collect(&all, quorum(5, 0), 32, &mut group) {
            Ok(collected) => {
                assert_eq!(collected.attempt.active, sent, "{moments:?}");
                expect_sum(&collected.sum, &values, &sent);
                assert_eq!(collected.dropped_out.len(), sent.len() - unmasked);
                assert!(unmasked == sent.len() || unmasked >= quorum(5, 0));
                assert_eq!(collected.wrong, []);
                sums += 1;
            }
            Err(Failed::Collect(CollectError::TooFew { left, .. })) => {
                assert_eq!(left.len(), sent.len(), "{moments:?}");
                assert!(left.len() < 3);
                few += 1;
            }
            Err(Failed::KeyShare(KeyShareError::TooFew { found, needed, .. })) => {
                assert_eq!((found, needed), (unmasked, 3), "{moments:?}");
                assert!(found < needed);
                still_masked += 1;
            }
            Err(other) => panic!("{moments:?}: {other}"),
        }
    }
    assert!(
        sums > 50 && few > 20 && still_masked > 30,
        "{sums} sums, {few} with too few, {still_masked} still masked"
    );
}

/// Returns true if some party drops out before its message, which causes a second attempt.
fn code_has_before(code: usize) -> bool {
    (0..5).any(|party| code / 3usize.pow(party) % 3 == 1)
}

#[test]
fn key_shares_are_for_their_holders_and_unmask_one_attempt() {
    let members = members(7);
    let all: Vec<usize> = (0..7).collect();
    let first = id(9, &all, 32, 4);
    let again = SumId { attempt: 1, active: &all[..6], ..first };
    let (unmasking, needed) = (members[6].unmasking(&first), quorum(7, 0));
    assert_eq!(needed, 4);
    let sound = shares(&members, &all, 6, &first);
    assert_eq!(sound.len(), 6, "all others hold one");
    let reconstructed =
        |shares: &[(usize, Evaluation)]| reconstruct(6, needed, shares, &unmasking.commitment(), &first);
    let whole = Ok(Reconstructed { unmasking, wrong: vec![] });
    assert_eq!(reconstructed(&sound), whole);
    assert_eq!(reconstructed(&sound[2..]), whole, "any four");
    let few = |found| Err(KeyShareError::TooFew { party: 7, found, needed: 4 });
    assert_eq!(reconstructed(&sound[..3]), few(3));
    // A repeated holder counts once; the party's own value and bytes that are not a point of the group do not
    // count.
    assert_eq!(
        reconstructed(&[&sound[..3], &sound[..3], &[(6, sound[3].1), (5, [0xff; 32])]].concat()),
        few(3)
    );
    // Shares for another attempt do not unmask this one.
    let other = reconstructed(&shares(&members, &all, 6, &again));
    assert_eq!(other, Err(KeyShareError::Wrong { party: 7, found: 6, needed: 4, withstood: 2 }));
    let mixed = [&sound[..3], &shares(&members, &all[3..], 6, &again)[..]].concat();
    assert!(
        matches!(reconstructed(&mixed), Err(KeyShareError::Wrong { .. })),
        "three of four and three of another attempt"
    );
    // A share is invalid for another holder, sender or threshold.
    let mut third = self::members(7).swap_remove(3);
    let sealed = members[6].key_shares(&all, 4);
    let place = |holder: usize| holders(&all, 6).iter().position(|&other| other == holder).expect("a holder");
    assert_eq!(third.keep_key_share(6, &sealed[place(3)], 4), Ok(()));
    for (from, sealed, needed) in [
        (6, &sealed[place(2)], 4),
        (5, &sealed[place(3)], 4),
        (3, &sealed[place(3)], 4),
        (6, &sealed[place(3)], 5),
    ] {
        assert_eq!(
            third.keep_key_share(from, sealed, needed),
            Err(KeyShareError::Unreadable { from: from + 1 })
        );
    }
}

/// Every set of holders lies. If the number of liars is within the withstood limit, the result is the right
/// unmasking value and names the liars.
#[test]
fn wrong_shares_are_left_out_and_their_holders_named() {
    let (mut right, mut none) = (0, 0);
    for count in [4, 5, 6, 7] {
        let members = members(count);
        let all: Vec<usize> = (0..count).collect();
        let id = id(2, &all, 32, 2);
        let (unmasking, needed) = (members[0].unmasking(&id), quorum(count, 0));
        let sound = shares(&members, &all, 0, &id);
        let withstood = withstands(sound.len(), needed);
        for lying in 0u32..1 << sound.len() {
            let mut shares = sound.clone();
            let liars: Vec<usize> = (0..shares.len()).filter(|share| lying >> share & 1 == 1).collect();
            for &liar in &liars {
                // A valid point, but of another party: only the commitment reveals the lie.
                shares[liar].1 = members[shares[liar].0]
                    .evaluation((shares[liar].0 % (count - 1)) + 1, &id)
                    .unwrap_or_else(|| members[0].evaluation(1, &id).expect("it holds it"));
            }
            match reconstruct(0, needed, &shares, &unmasking.commitment(), &id) {
                Ok(reconstructed) => {
                    assert_eq!(reconstructed.unmasking, unmasking);
                    assert!(liars.len() <= sound.len() - needed);
                    let first_lie = liars.first().is_some_and(|&liar| liar < needed);
                    let named: Vec<usize> = liars.iter().map(|&liar| shares[liar].0).collect();
                    assert_eq!(reconstructed.wrong, if first_lie { named } else { vec![] });
                    right += 1;
                }
                Err(error) => {
                    assert!(matches!(error, KeyShareError::Wrong { .. }), "{error}");
                    assert!(liars.len() > withstood, "{count}: {liars:?}");
                    none += 1;
                }
            }
        }
    }
    assert!(right > 20 && none > 50, "{right} unmasked, {none} not");
    // Five of a hundred parties lie, at any position.
    let members = members(100);
    let all: Vec<usize> = (0..100).collect();
    let id = id(2, &all, 32, 8);
    let mut shares = shares(&members, &all, 0, &id);
    assert_eq!(withstands(99, quorum(100, 0)), 5);
    for liar in [0, 17, 40, 41, 98] {
        shares[liar].1 = members[2].evaluation(1, &id).expect("it holds it");
    }
    let unmasking = members[0].unmasking(&id);
    let reconstructed =
        reconstruct(0, quorum(100, 0), &shares, &unmasking.commitment(), &id).expect("five are withstood");
    assert_eq!(reconstructed, Reconstructed { unmasking, wrong: vec![1, 18, 41, 42, 99] });
}

/// A party that unmasks its message wrongly is replaced like a party that dropped out, and the result names
/// it. If the others cannot replace it, the error names it.
#[test]
fn a_wrong_unmasking_value_is_noticed_and_its_party_named() {
    let (members, values) = (members(5), values(5, 3));
    let all: Vec<usize> = (0..5).collect();
    let mut moments = vec![DropoutMoment::Never; 5];
    moments[2] = DropoutMoment::Lies;
    let collected =
        collect(&all, 3, 32, &mut group(&members, &values, moments.clone(), 1)).expect("four are left");
    expect_sum(&collected.sum, &values, &all);
    assert_eq!((collected.dropped_out, collected.wrong), (vec![2], vec![2]));
    moments[0] = DropoutMoment::Within(0);
    moments[4] = DropoutMoment::Within(0);
    let refused = collect(&all, 3, 32, &mut group(&members, &values, moments, 2));
    let few = KeyShareError::TooFew { party: 1, found: 2, needed: 3 };
    assert_eq!(refused, Err(Failed::KeyShare(few)), "party 1 vanished, and two are left");
    let (two, pair) = (self::members(2), [0, 1]);
    let mut lies = group(&two, &values, vec![DropoutMoment::Never, DropoutMoment::Lies], 3);
    assert_eq!(collect(&pair, 2, 32, &mut lies), Err(CollectError::Unmasking { party: 2 }.into()));
}

#[test]
fn sums_that_would_hide_nothing_are_refused() {
    let (members, values) = (members(5), values(5, 3));
    let mut moments = vec![DropoutMoment::Never; 5];
    moments[1] = DropoutMoment::Before(0);
    let mut alone = group(&members, &values, moments, 1);
    let refused = collect::<u32, _>(&[0, 1], 0, 32, &mut alone);
    assert_eq!(refused, Err(CollectError::TooFew { left: vec![0], of: 2, needed: 2 }.into()));
    let refused = collect::<u32, _>(&[4], 0, 32, &mut alone);
    assert_eq!(refused, Err(CollectError::TooFew { left: vec![4], of: 1, needed: 2 }.into()));
    assert_eq!(total(vec![vec![1u32, 2], vec![1]], 32), Err(CollectError::Length { expected: 2, found: 1 }));
}
