//! A hostile receiver of secure sums against the real participants. With any requests and any dropouts at any
//! moment, the receiver can compute at most one sum of a round, over one set that was large enough. A sum
//! that it receives is exact.
//!
//! "Can compute" is linear algebra over everything that the receiver was sent ([`receiver`]). Vectors are
//! three words long.

mod group;
mod keys;
mod proof;
mod receiver;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::group::{Id, PartyGroup};
use self::receiver::Receiver;

/// Moment at which a party drops out, or is claimed to drop out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Never,
    /// Before its message of the first or second attempt arrives.
    Masking(u32),
    /// Before its unmasking value arrives.
    Unmasking,
    /// Before it helps to unmask the messages of others.
    Recovery,
}

const MOMENTS: [Moment; 5] =
    [Moment::Never, Moment::Masking(0), Moment::Masking(1), Moment::Unmasking, Moment::Recovery];

fn id(round: u64, attempt: u32, active: &[usize]) -> Id {
    Id { round, attempt, active: active.to_vec(), over: 0 }
}

/// Runs a round by the protocol, with dropouts. Returns the attempt that was summed, if there was one.
fn as_agreed(
    group: &mut PartyGroup,
    receiver: &mut Receiver,
    round: u64,
    scheduled: &[usize],
    moments: &[Moment],
) -> Option<Id> {
    let mut sum = id(round, 0, scheduled);
    loop {
        // Messages of parties that are claimed to be lost arrive anyway, but too late.
        let answered: Vec<bool> =
            sum.active.iter().map(|&party| receiver.ask(group, party, &sum, scheduled)).collect();
        if !answered.contains(&true) || (answered.contains(&false) && sum.attempt == 0) {
            return None;
        }
        let lost = |party: &usize| moments[*party] == Moment::Masking(sum.attempt);
        if answered.iter().all(|answered| *answered) && !sum.active.iter().any(lost) {
            break;
        }
        let left: Vec<usize> = sum.active.iter().copied().filter(|party| !lost(party)).collect();
        if left.len() == sum.active.len() || left.iter().all(|&party| group.is_corrupt(party)) {
            return None;
        }
        sum = id(round, sum.attempt + 1, &left);
    }
    let dropped_out: Vec<usize> =
        sum.active.iter().copied().filter(|&party| moments[party] == Moment::Unmasking).collect();
    for &party in sum.active.iter().filter(|party| !dropped_out.contains(party)) {
        assert!(receiver.unmask(group, party, round, sum.attempt), "the last message is unmasked");
    }
    for &party in &dropped_out {
        for &holder in &sum.active {
            if matches!(moments[holder], Moment::Never | Moment::Masking(_)) {
                receiver.reveal(group, holder, round, sum.attempt, party);
            }
        }
    }
    let found = receiver.sum(group, &sum)?;
    assert_eq!(found, PartyGroup::expected(&sum.active, round), "{sum:?} {moments:?}");
    Some(sum)
}

/// Asks the parties that were claimed to have dropped out for everything that they might still give.
fn afterwards(group: &mut PartyGroup, receiver: &mut Receiver, round: u64, scheduled: &[usize]) {
    let ids: Vec<Id> = receiver.ids().iter().filter(|id| id.round == round).cloned().collect();
    for attempt in 0..3 {
        for party in 0..group.parties {
            receiver.unmask(group, party, round, attempt);
        }
        for (party, holder) in pairs(group.parties) {
            receiver.reveal(group, holder, round, attempt, party);
        }
    }
    for known in &ids {
        let others: Vec<usize> = known.active[1..].to_vec();
        for next in [
            Id { over: 1, ..known.clone() },
            Id { attempt: known.attempt + 1, ..known.clone() },
            Id { attempt: known.attempt + 1, active: others.clone(), ..known.clone() },
            Id { attempt: 0, active: others, ..known.clone() },
        ] {
            for party in group.honest().filter(|party| next.active.contains(party)) {
                receiver.ask(group, party, &next, scheduled);
                receiver.unmask(group, party, round, next.attempt);
            }
        }
    }
    for (party, holder) in pairs(group.parties) {
        (0..4).for_each(|attempt| receiver.reveal(group, holder, round, attempt, party));
    }
}

fn pairs(parties: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..parties).flat_map(move |party| (0..parties).map(move |holder| (party, holder)))
}

/// Runs one round with these dropouts, real or claimed. Returns true if there was a sum.
fn check(group: &mut PartyGroup, round: u64, scheduled: &[usize], moments: &[Moment]) -> bool {
    let mut receiver = Receiver::default();
    let agreed = as_agreed(group, &mut receiver, round, scheduled, moments);
    afterwards(group, &mut receiver, round, scheduled);
    let known = receiver.one_sum(group, round);
    if let Some(sum) = &agreed {
        let honest: Vec<usize> =
            sum.active.iter().copied().filter(|&party| !group.is_corrupt(party)).collect();
        assert_eq!(known, Some(honest), "the agreed sum: {moments:?}");
    }
    agreed.is_some()
}

/// With up to five parties, every party has every moment. With up to eight, all parties of a subset share one
/// moment.
#[test]
fn whoever_is_dropped_at_whatever_moment_one_exact_sum_is_known_or_none() {
    let (mut sums, mut none) = (0, 0);
    for parties in 2..=8usize {
        for corrupt in 0..=(parties - 2).min(2) {
            let mut group = PartyGroup::new(parties, corrupt, parties, corrupt);
            let all: Vec<usize> = (0..parties).collect();
            let mut round = 0;
            let mut run = |moments: &[Moment]| {
                round += 1;
                *(if check(&mut group, round, &all, moments) { &mut sums } else { &mut none }) += 1;
            };
            if parties <= 5 {
                for code in 0..MOMENTS.len().pow(parties as u32) {
                    let moment = |party: &usize| MOMENTS[code / MOMENTS.len().pow(*party as u32) % 5];
                    run(&all.iter().map(moment).collect::<Vec<_>>());
                }
                continue;
            }
            for (subset, moment) in
                (0u32..1 << parties).flat_map(|s| MOMENTS[1..].iter().map(move |m| (s, *m)))
            {
                let moment_of = |party: &usize| if subset >> party & 1 == 1 { moment } else { Moment::Never };
                run(&all.iter().map(moment_of).collect::<Vec<_>>());
            }
        }
    }
    assert!(sums > 3_000 && none > 3_000, "{sums} sums, {none} rounds without");
}

/// Repeats the test with many parties, some of which drop out at random, up to the allowed number and beyond.
#[test]
fn with_up_to_128_parties_one_exact_sum_is_known_or_none() {
    let mut sums = 0;
    for parties in [16, 32, 64, 100, 128] {
        let mut rng = ChaCha8Rng::seed_from_u64(parties as u64);
        let kinds = [(5, 8), (parties / 4, parties), (0, 8)];
        for (corrupt, degree) in kinds.into_iter().take(if parties > 64 { 2 } else { 3 }) {
            let mut group = PartyGroup::new(parties, corrupt, degree, corrupt);
            for round in 0..4 {
                let mut moments = vec![Moment::Never; parties];
                let most = [0.1, 0.2, 0.3, 0.6][round as usize];
                let dropped = (most * parties as f64) as usize;
                moments[..dropped].fill_with(|| MOMENTS[rng.random_range(1..5)]);
                moments.shuffle(&mut rng);
                let mut scheduled: Vec<usize> = (0..parties).collect();
                if round == 1 {
                    scheduled.shuffle(&mut rng);
                    scheduled.truncate(parties - 3);
                    scheduled.sort_unstable();
                }
                sums += usize::from(check(&mut group, round, &scheduled, &moments));
            }
        }
    }
    assert!(sums >= 30, "{sums}");
}

/// Divides the honest parties in every way, with the colluders on both sides. The receiver claims to each
/// side that this side is complete, or that the other side has dropped out. Each side unmasks, and helps to
/// unmask, the attempt that it knows.
#[test]
fn however_parties_are_divided_one_side_at_most_gives_its_sum() {
    let (mut sums, mut none) = (0, 0);
    for (parties, colluding) in
        (2..=8).flat_map(|n| (0..=(n - 2).min(3)).map(move |t| (n, t))).chain([(32, 3), (64, 9)])
    {
        let mut group = PartyGroup::new(parties, colluding, colluding + 2, colluding);
        let all: Vec<usize> = (0..parties).collect();
        let honest = group.honest().count();
        let ways: Vec<u64> = match parties {
            2..=8 => (0..1 << honest).collect(),
            _ => (1..5).map(|fifths| (1 << (honest * fifths / 5)) - 1).collect(),
        };
        for (round, way) in ways.into_iter().flat_map(|way| [way; 3]).enumerate() {
            let side = |of: u64| -> Vec<usize> {
                all.iter()
                    .copied()
                    .filter(|&party| group.is_corrupt(party) || way >> party & 1 == of)
                    .collect()
            };
            let (one, other, number) = (side(1), side(0), round as u64);
            let told = match round % 3 {
                // Two separate sets; all parties and the rest; all parties and the rest, where the first side
                // helps only with the sum of all.
                0 => [id(number, 0, &one), id(number, 0, &other)],
                _ => [id(number, 0, &all), id(number, 1, &other)],
            };
            let mut receiver = Receiver::default();
            for &party in &all {
                if told[0].active.contains(&party) {
                    receiver.ask(&mut group, party, &told[0], &all);
                }
                if other.contains(&party) && !(round % 3 == 2 && one.contains(&party)) {
                    receiver.ask(&mut group, party, &told[1], &all);
                }
            }
            for attempt in 0..2 {
                all.iter().for_each(|&party| {
                    receiver.unmask(&mut group, party, number, attempt);
                });
                for (party, holder) in pairs(parties) {
                    receiver.reveal(&group, holder, number, attempt, party);
                }
            }
            let found = receiver.one_sum(&group, number);
            *(if found.is_some() { &mut sums } else { &mut none }) += 1;
        }
    }
    assert!(sums > 1_000 && none > 100, "{sums} sums, {none} without");
}

/// Sends each party different random requests: sets, attempts, rows, unmasking values and helpers,
/// repeatedly, over rounds that leave out different parties.
#[test]
fn a_receiver_that_asks_at_random_knows_one_sum_of_a_round_at_most() {
    let (mut known, mut largest) = (0, 0);
    for (parties, games) in (2..=8).map(|n| (n, 150)).chain([(16, 20), (32, 10), (64, 4), (100, 2), (128, 2)])
    {
        for colluding in [0, 1, 3] {
            if parties < colluding + 2 || (parties > 32 && colluding < 3) {
                continue;
            }
            let mut group = PartyGroup::new(parties, colluding, 8, colluding);
            let mut rng = ChaCha8Rng::seed_from_u64((parties + 1_000 * colluding) as u64);
            let mut receiver = Receiver::default();
            for round in 0..games {
                let scheduled = chosen(&mut rng, &(0..parties).collect::<Vec<_>>(), 0.1);
                // A few sets, nested or not, that a receiver might choose in order to divide the parties.
                let first = chosen(&mut rng, &scheduled, 0.05);
                let sets = [
                    &scheduled[..],
                    &first,
                    &chosen(&mut rng, &first, 0.3),
                    &chosen(&mut rng, &scheduled, 0.3),
                ];
                let ids: Vec<Id> = sets
                    .iter()
                    .flat_map(|set| {
                        [(0, 0), (1, 0), (2, 0), (0, 1)].map(|(a, over)| Id { over, ..id(round, a, set) })
                    })
                    .collect();
                for _ in 0..30 * parties {
                    let party = rng.random_range(0..parties);
                    let id = &ids[rng.random_range(0..ids.len())];
                    match rng.random_range(0..4) {
                        0 | 1 if id.active.contains(&party) => {
                            receiver.ask(&mut group, party, id, &scheduled);
                        }
                        2 => {
                            let round = round - u64::from(rng.random_bool(0.2) && round > 0);
                            receiver.unmask(&mut group, party, round, id.attempt);
                        }
                        _ => receiver.reveal(&group, party, round, id.attempt, rng.random_range(0..parties)),
                    }
                }
                for (party, holder) in pairs(parties) {
                    (0..3).for_each(|attempt| receiver.reveal(&group, holder, round, attempt, party));
                }
                for old in round.saturating_sub(1)..=round {
                    if let Some(of) = receiver.one_sum(&group, old) {
                        known += 1;
                        largest = largest.max(of.len());
                    }
                }
            }
        }
    }
    assert!(known > 100 && largest > 2, "{known} sums, of up to {largest} parties");
}

/// Returns the parties that remain after leaving some out at random.
fn chosen(rng: &mut ChaCha8Rng, of: &[usize], left_out: f64) -> Vec<usize> {
    of.iter().copied().filter(|_| !rng.random_bool(left_out)).collect()
}
