//! Properties of a linker, known before it links. This module links nothing.

use crate::data::KeyKind;

/// Properties of a linker that methods, experiments and readers need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// K, the number of neighbours per query.
    pub neighbours: usize,
    /// Kind of keys that the linker accepts.
    pub takes: KeyKind,
    /// Information that each party learns while the linker links.
    pub reveals: Reveals,
    /// True if the links have similarities.
    pub similarities: bool,
    /// True if a similarity is the probability that the neighbour is the right record, where a row has at
    /// most one right record. Then [`Links::estimate`] is the mean number of right records per row, including
    /// right records that are not among the neighbours.
    ///
    /// [`Links::estimate`]: super::Links::estimate
    pub probabilities: bool,
    /// Similarity at or below which two records do not match, if there is one. The linker returns K
    /// neighbours anyway, but neighbours at or below the floor are not matches.
    pub floor: Option<f32>,
    /// True if keys leave the primary as a table, so that neighbours can be selected again for each batch;
    /// false if they are sealed.
    pub in_the_clear: bool,
    /// True if the links of a query are independent of other queries. Only then can `privacy.max_occurrences`
    /// be enforced, because the rows that a record serves must not depend on any other record.
    pub independent: bool,
    /// True if the links of a new query are independent of other new queries, given what both sides learned
    /// from the run's keys ([`Querier::learned`], [`Links::estimate`]).
    ///
    /// [`Querier::learned`]: super::Querier::learned
    /// [`Links::estimate`]: super::Links::estimate
    pub independent_of_new: bool,
    /// True if the linker links equal keys: numbers with a leading zero and names in different case may then
    /// be different keys.
    pub equality: bool,
    /// True if the data holder poses a challenge before it links.
    pub challenges: bool,
    /// True if the position in the table, and not a key, decides which records belong to a primary record.
    /// The data holder then needs K records for each primary record, in the same order, and the records of a
    /// run belong to no other rows.
    pub by_position: bool,
    /// Returns true if one threshold on the similarity separates links from other pairs, so that `fet link` may estimate it from how
    /// similar the records of one table are to each other.
    pub has_threshold: bool,
}

impl About {
    /// Creates the properties of a linker with similarities that sends keys in the clear, as most do; change
    /// the fields that differ. The links are not declared independent.
    pub const fn new(neighbours: usize, takes: KeyKind, reveals: Reveals) -> Self {
        Self {
            neighbours,
            takes,
            reveals,
            similarities: true,
            probabilities: false,
            floor: None,
            in_the_clear: true,
            independent: false,
            independent_of_new: false,
            equality: false,
            challenges: false,
            by_position: false,
            has_threshold: false,
        }
    }
}

/// Information that a linker reveals, in addition to the links themselves. The links reveal to the secondary
/// the number of primary records, and which secondary records belong to each. All parties are assumed to
/// follow the protocol and not to collude. A method that requests similarities reveals those too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reveals {
    /// Information for the secondary, which links.
    pub secondary: &'static str,
    /// Information for the primary.
    pub primary: &'static str,
    /// Information for an eavesdropper on all messages who does not know the parties' secret.
    pub eavesdropper: &'static str,
}
