//! Splits that keep each group in one part.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::error::SplitError;
use super::fractions::Sizes;
use super::parts::Split;
use super::strata::rows_by_stratum;

pub(super) fn split(groups: &[usize], sizes: Sizes, rng: &mut ChaCha8Rng) -> Result<Split, SplitError> {
    let groups = shuffled_groups(groups, rng);
    let [train, validation, test] = deal(groups, [sizes.train, sizes.validation, sizes.test])?;
    Ok(Split { train, validation, test, aside: vec![] })
}

/// Returns the rows of each group, largest group first, groups of equal size in a random order.
pub(super) fn shuffled_groups(groups: &[usize], rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    let order: Vec<usize> = (0..groups.len()).collect();
    let mut members = rows_by_stratum(groups, &order);
    members.shuffle(rng);
    members.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
    members
}

/// Deals groups to parts: each group goes to the part that lacks most rows. If only as many groups remain as
/// parts are empty, the group goes to an empty part.
pub(super) fn deal<const PARTS: usize>(
    groups: Vec<Vec<usize>>,
    targets: [usize; PARTS],
) -> Result<[Vec<usize>; PARTS], SplitError> {
    let parts = deal_to(groups, &targets)?;
    Ok(parts.try_into().expect("as many parts as targets"))
}

/// [`deal`] for a number of parts that is known only at run time.
pub(super) fn deal_to(groups: Vec<Vec<usize>>, targets: &[usize]) -> Result<Vec<Vec<usize>>, SplitError> {
    if groups.len() < targets.len() {
        return Err(SplitError::TooFewGroups { least: targets.len(), groups: groups.len() });
    }
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); targets.len()];
    let count = groups.len();
    for (dealt, rows) in groups.into_iter().enumerate() {
        let empty = parts.iter().filter(|part| part.is_empty()).count();
        let forced = count - dealt <= empty;
        let lacks = |part: usize| targets[part] as i64 - parts[part].len() as i64;
        let part = (0..parts.len())
            .filter(|part| !forced || parts[*part].is_empty())
            .max_by_key(|part| (lacks(*part), std::cmp::Reverse(*part)))
            .expect("there is a part");
        parts[part].extend(rows);
    }
    Ok(parts)
}
