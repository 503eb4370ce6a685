//! Links of the primary's rows with the secondaries' records.

use fet_core::data::{Features, Matrix};

use super::error::RunError;
use crate::prepare::PreparedParty;

/// Links of the primary's rows with the records of every secondary, as the secondaries reported them.
#[derive(Debug, Clone, Default)]
pub(super) struct RowLinks {
    /// Links by party; `None` for a party that dropped out.
    pub(super) parties: Vec<Option<PartyLinks>>,
}

/// Links of the primary's rows with the records of one secondary.
#[derive(Debug, Clone)]
pub(super) struct PartyLinks {
    /// Number of real neighbours of each row.
    pub(super) available: usize,
    /// Standardised similarities of the neighbours, [n, K]; `None` if the party does not send them.
    pub(super) similarities: Option<Matrix<f32>>,
}

impl RowLinks {
    /// Returns the number of real neighbours that a party has for each row.
    pub(super) fn available(&self, party: usize) -> usize {
        self.parties.get(party).and_then(Option::as_ref).map_or(0, |links| links.available)
    }

    /// Returns the similarities of a party's neighbours; `None` if the party does not send them.
    pub(super) fn similarities(&self, party: usize) -> Option<&Matrix<f32>> {
        self.parties.get(party)?.as_ref()?.similarities.as_ref()
    }

    /// Returns the linked parties, from 0, ascending.
    pub(super) fn parties(&self) -> Vec<usize> {
        let linked = self.parties.iter().enumerate().filter(|(_, links)| links.is_some());
        linked.map(|(party, _)| party).collect()
    }
}

/// New records of the primary, prepared and linked with every active party.
#[derive(Debug, Clone)]
pub struct NewRecords {
    pub(super) records: PreparedParty,
    pub(super) links: RowLinks,
}

impl NewRecords {
    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.records.raw_keys.rows()
    }

    /// Returns the secondaries that the records are linked with, from 0.
    pub fn parties(&self) -> Vec<usize> {
        self.links.parties()
    }

    /// Returns the same links with other features of the primary, prepared in the same way.
    pub fn with_features(&self, features: Features) -> Result<Self, RunError> {
        let mut other = self.clone();
        other.records.replace_features(features)?;
        Ok(other)
    }

    /// Returns the same links, with the keys of record `order[i]` as the model's keys of record i.
    #[must_use]
    pub fn with_keys_in_order(&self, order: &[usize]) -> Self {
        let mut other = self.clone();
        other.records.scaled.keys = self.records.scaled.keys.select_rows(order);
        other
    }
}
