//! Enumerates the proof of the module's documentation: no coalition, no two sets and no division of the
//! honest parties unmask two sums of a round. With a quorum smaller by one, some division does.

use fet_privacy::secure_sum::{MaskGraph, quorum};

/// Returns true if two sums of one round can be unmasked. `sum` parties make a sum, `threshold` holders
/// unmask a mask, the last `t` of `parties` collude, and `round` holds the parties of the round.
fn two_can_be_unmasked(parties: u32, t: u32, round: u32, sum: u32, threshold: u32) -> bool {
    let honest = (1u32 << (parties - t)) - 1;
    let large = |set: &u32| set.count_ones() >= sum && set & !round == 0;
    let sets: Vec<u32> = (0..1 << parties).filter(large).collect();
    // An honest party unmasks one of the two sums. The other parties that took part are replaced, or the sum
    // stays closed. Colluders help.
    let unmasked = |set: u32, members: u32| {
        let missing = set & honest & !members;
        missing == 0 || members.count_ones() + t >= threshold
    };
    sets.iter().any(|&one| {
        sets.iter().filter(|&&other| other != one).any(|&other| {
            let either = one & other & honest;
            let (only_one, only_other) = (one & honest & !other, other & honest & !one);
            // All subsets of the parties that are in both sets.
            let mut of_one = either;
            loop {
                if unmasked(one, only_one | of_one) && unmasked(other, only_other | (either & !of_one)) {
                    return true;
                }
                if of_one == 0 {
                    return false;
                }
                of_one = (of_one - 1) & either;
            }
        })
    })
}

#[test]
fn no_coalition_unmasks_two_sums_of_a_round_and_a_smaller_quorum_would() {
    for parties in 2..=7u32 {
        for t in 0..=parties - 2 {
            let threshold = quorum(parties as usize, t as usize) as u32;
            for round in 1u32..1 << parties {
                let sum = quorum(round.count_ones() as usize, t as usize) as u32;
                assert!(!two_can_be_unmasked(parties, t, round, sum, threshold), "{parties}, {t}, {round:b}");
                // Fewer colluders than assumed are not stronger.
                if t > 0 {
                    assert!(
                        !two_can_be_unmasked(parties, t - 1, round, sum, threshold),
                        "{parties}, {t}, {round:b}"
                    );
                }
            }
            let all = (1 << parties) - 1;
            assert!(
                two_can_be_unmasked(parties, t, all, threshold - 1, threshold),
                "{parties}, {t}: fewer in a sum"
            );
            // If the number of parties and colluders is odd, one colluder more than assumed is too many.
            if (parties + t) % 2 == 1 && t + 2 < parties {
                assert!(two_can_be_unmasked(parties, t + 1, all, threshold, threshold), "{parties}, {t}");
            }
        }
    }
    assert!(
        two_can_be_unmasked(4, 0, 0b1111, 3, 2),
        "two of four holders remove a mask: others may remove another"
    );
}

/// An attempt that not all parties unmask reveals nothing. If any coalition is removed from any mask graph,
/// masks still connect the remaining parties. The sum is then the only combination of their messages without
/// the masks of their pairs.
#[test]
fn every_coalition_leaves_the_others_joined_by_masks() {
    for parties in 2..=7usize {
        for degree in [2, 4, 6] {
            let graph = MaskGraph::new(parties, degree);
            for coalition in 0u32..1 << parties {
                let t = coalition.count_ones() as usize;
                let left: Vec<usize> = (0..parties).filter(|party| coalition >> party & 1 == 0).collect();
                if t > graph.tolerates() || left.len() < 2 {
                    continue;
                }
                let mut joined = vec![left[0]];
                let mut next = 0;
                while next < joined.len() {
                    for other in graph.neighbours(joined[next]) {
                        if left.contains(&other) && !joined.contains(&other) {
                            joined.push(other);
                        }
                    }
                    next += 1;
                }
                assert_eq!(joined.len(), left.len(), "{graph:?} without {coalition:b}");
            }
        }
    }
}
