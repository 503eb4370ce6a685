//! Properties of a linker, known before it links. Nothing is linked here.

use crate::data::KeyKind;

/// Properties of a linker that methods, experiments and readers need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// K, the number of neighbours per query.
    pub neighbours: usize,
    /// The kind of keys it accepts.
    pub takes: KeyKind,
    /// What each party learns while it links.
    pub reveals: Reveals,
    /// Whether its links have similarities.
    pub similarities: bool,
    /// Whether a similarity is the probability that the neighbour is the right record, of which there is one at most. Then
    /// [`Links::estimate`] is the mean number of right records of a row, those among them that are not its neighbours.
    ///
    /// [`Links::estimate`]: super::Links::estimate
    pub probabilities: bool,
    /// The similarity at or below which two records do not match, if there is one: K neighbours are returned anyway,
    /// but those are not matches.
    pub floor: Option<f32>,
    /// Whether keys leave the primary as a table, so that neighbours can be re-selected for each batch, or sealed.
    pub in_the_clear: bool,
    /// Whether the links of a query are independent of other queries. Only then can `privacy.max_occurrences` be
    /// enforced: the rows that a record serves must not depend on any other record.
    pub independent: bool,
    /// Whether it links equal keys: numbers with a leading zero and names of different case may then be different keys.
    pub equality: bool,
    /// Whether the owner poses a challenge before it links.
    pub challenges: bool,
    /// Whether records belong to a primary record by their place in the table, and no key decides. Then the owner needs K
    /// records for each primary record, in the same order, and the records of a run belong to no other rows.
    pub by_position: bool,
    /// Returns true if one threshold on the similarity separates links from other pairs, so that `fet link` may estimate it from how
    /// similar the records of one table are to each other.
    pub has_threshold: bool,
}

impl About {
    /// A linker with similarities that sends keys in the clear, as most do; change the fields that differ. It claims no
    /// independence.
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
            equality: false,
            challenges: false,
            by_position: false,
            has_threshold: false,
        }
    }
}

/// What a linker reveals to whom, beyond what the links themselves reveal to the secondary: how many primary records
/// there are, and which of its own belong to each. All parties are assumed to follow the protocol and not to collude.
/// Similarities that a method requests come on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reveals {
    /// What the secondary learns, which links.
    pub secondary: &'static str,
    /// What the primary learns.
    pub primary: &'static str,
    /// What an eavesdropper on all messages, without the parties' secret, learns.
    pub eavesdropper: &'static str,
}
