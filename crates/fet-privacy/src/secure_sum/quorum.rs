//! Number of parties that make a sum, and that remove the mask of a party that dropped out. Any two such sets
//! share an honest party.

/// Returns the number of `parties`, at most `colluding` of which collude with the receiver, that must answer
/// an attempt at a sum: ⌊(n+t)/2⌋ + 1, and at least t + 2. The same number removes a mask in place of a party
/// that dropped out.
///
/// Two sets of this size have more than t parties in common. At least one of these is honest, and an honest
/// party unmasks one attempt at a sum.
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
                assert!(quorum <= parties, "all parties together suffice: {parties}, {colluding}");
                assert!(2 * quorum > parties + colluding, "{parties}, {colluding}");
                assert!(
                    2 * (quorum - 1) <= parties + colluding || quorum == colluding + 2,
                    "the smallest such number"
                );
            }
        }
        assert_eq!(quorum(usize::MAX, usize::MAX), usize::MAX, "a wrong setting does not overflow");
    }
}
