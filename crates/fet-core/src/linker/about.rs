//! What is known of a linker before it links. Nothing is linked here.

use crate::data::KeyKind;

/// About a linker: what a method, an experiment and a reader must know of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// How many neighbours each query gets, K.
    pub neighbours: usize,
    /// What keys it takes.
    pub takes: KeyKind,
    /// What is learned by whom while it links.
    pub reveals: Reveals,
    /// Whether its links say how similar they are.
    pub similarities: bool,
    /// The similarity at or below which two records are no link, where there is such a one: K neighbours are given all
    /// the same, but nobody should take the last of them for matches.
    pub floor: Option<f32>,
    /// Whether keys leave the primary as a table, of which neighbours can be chosen anew for each batch, rather than sealed.
    pub in_the_clear: bool,
    /// Whether the links of a query depend on no other query. Only then can `privacy.max_occurrences` be kept: which rows a
    /// record serves must depend on no other record.
    pub independent: bool,
    /// Whether the owner poses a challenge before it links.
    pub challenges: bool,
}

impl About {
    /// A linker that gives similarities and sends keys in the clear, as most do; the fields of what is not so are to be
    /// changed. It claims no independence.
    pub const fn new(neighbours: usize, takes: KeyKind, reveals: Reveals) -> Self {
        Self {
            neighbours,
            takes,
            reveals,
            similarities: true,
            floor: None,
            in_the_clear: true,
            independent: false,
            challenges: false,
        }
    }
}

/// What a linker tells whom, beyond what the links themselves tell the secondary: how many primary records there are,
/// and which of its own belong to each. All parties are taken to follow the protocol and not to collude. Similarities that
/// a method asks for come on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reveals {
    /// What the secondary learns, which links.
    pub secondary: &'static str,
    /// What the primary learns.
    pub primary: &'static str,
    /// What an eavesdropper learns, who reads all messages and does not have the parties' secret.
    pub eavesdropper: &'static str,
}
