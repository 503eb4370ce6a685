//! How many parties make a sum, and open a vanished party's mask: so many that any two such sets share an honest party.

/// So many of `parties`, of which up to `colluding` may collude with the receiver, answer an attempt at a sum, and so many
/// open a mask in the place of a party that vanished: ⌊(n+t)/2⌋ + 1, and at least t + 2.
///
/// Two sets of so many have more than t parties in common, so that one of these is honest, and an honest party opens one
/// attempt at a sum.
pub fn quorum(parties: usize, colluding: usize) -> usize {
    let half = parties.saturating_add(colluding) / 2;
    half.saturating_add(1).max(colluding.saturating_add(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_quorums_share_more_parties_than_collude() {
        for parties in 2..=64 {
            for colluding in 0..=parties - 2 {
                let quorum = quorum(parties, colluding);
                assert!(quorum <= parties, "all together are enough: {parties}, {colluding}");
                assert!(2 * quorum > parties + colluding, "{parties}, {colluding}");
                assert!(2 * (quorum - 1) <= parties + colluding || quorum == colluding + 2, "the least such");
            }
        }
        assert_eq!(quorum(usize::MAX, usize::MAX), usize::MAX, "a wrong setting is no overflow");
    }
}
