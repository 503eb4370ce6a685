//! A code that a party sends once for each place: k-ary randomised response with a uniform symbol for places
//! without exactly one record. The caller keeps each drawn symbol: a second draw for the same place is a second
//! release, and places that are added later count as new releases of the records.
#![doc = include_str!("code/statement.md")]

mod sums;

use rand::Rng;

pub use self::sums::{CodeDesign, CodeError, SymbolSums};

use crate::labels::{EPSILON_RANGE, LabelError, RandomisedResponse};

/// Neighbouring relation of two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeRelation {
    /// One record is added or removed.
    AddRemove,
    /// One record is replaced with its key.
    Replace,
    /// The features of one record are replaced; its key, and with it its membership, is not protected.
    Features,
}

/// Randomised code of k symbols.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    response: RandomisedResponse,
    symbols: usize,
}

impl Code {
    /// Creates the code of `symbols` symbols with the most truthful randomised response that satisfies ε
    /// under the relation.
    ///
    /// # Errors
    /// There are fewer than two symbols, or no response in the range of ε₀ satisfies ε.
    pub fn for_target(symbols: usize, relation: CodeRelation, epsilon: f64) -> Result<Self, LabelError> {
        let (mut low, mut high) = EPSILON_RANGE;
        let of =
            |own: f64| RandomisedResponse::uniform(own, symbols).map(|response| Self { response, symbols });
        if of(low)?.epsilon(relation) > epsilon || epsilon.is_nan() {
            let rule = "must allow a randomised response";
            return Err(LabelError::Value { field: "epsilon", rule, value: epsilon });
        }
        if of(high)?.epsilon(relation) <= epsilon {
            return of(high);
        }
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                break;
            }
            if of(middle)?.epsilon(relation) <= epsilon { low = middle } else { high = middle }
        }
        of(low)
    }

    /// Returns p, the probability of the true symbol.
    pub fn truth(&self) -> f64 {
        self.response.probability(0, 0)
    }

    /// Returns ε₀ of the randomised response alone.
    pub fn response_epsilon(&self) -> f64 {
        self.response.epsilon()
    }

    /// Returns ε of one set of places.
    pub fn epsilon(&self, relation: CodeRelation) -> f64 {
        let (k, truth, other) =
            (self.symbols as f64, self.response.probability(0, 0), self.response.probability(1, 0));
        let (a, b) = ((k * truth).ln(), -(k * other).ln());
        let own = (truth / other).ln();
        match relation {
            CodeRelation::AddRemove => a.max(b),
            CodeRelation::Replace => own.max(2.0 * a).max(2.0 * b),
            CodeRelation::Features => own,
        }
    }

    /// Returns the probability of `symbol` at a place with these offers.
    pub fn probability(&self, symbol: usize, offers: &[usize]) -> f64 {
        match offers {
            [own] => self.response.probability(symbol, *own),
            _ => 1.0 / self.symbols as f64,
        }
    }

    /// Draws the symbol of a place with these offers. `noise` must be secret.
    ///
    /// # Panics
    /// If an offer is not one of the symbols.
    pub fn draw(&self, offers: &[usize], noise: &mut impl Rng) -> usize {
        match offers {
            [own] => self.response.answer(*own, noise),
            // Randomised response of a uniform symbol is uniform.
            _ => self.response.answer(crate::labels::below(self.symbols, noise), noise),
        }
    }
}
