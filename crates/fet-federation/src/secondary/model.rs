//! A party's finished model: its best parameters, and the preparation of its records. The party keeps the
//! file.

use fet_core::experiment::CommonSettings;
use fet_core::message::Terms;
use fet_core::parameters::Parameters;
use serde::{Deserialize, Serialize};

use super::SecondaryError;
use crate::prepare::Preparing;
use crate::state_file::{StateError, StateFile};

/// The header of a model file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) party: String,
    pub(super) number: usize,
    /// Common settings of the training.
    pub(super) settings: String,
    pub(super) preparing: Preparing,
    /// Digest of the training table.
    pub(super) table: [u8; 32],
}

/// A finished model that a party serves.
#[derive(Debug, Clone)]
pub struct Finished {
    model: Model,
    /// Parameters by name.
    pub(super) parameters: Parameters,
}

impl Model {
    pub(super) fn to_bytes(&self, parameters: Parameters) -> Vec<u8> {
        StateFile::new(self, parameters).to_bytes()
    }
}

impl Finished {
    /// Reads a model file.
    pub fn read(bytes: &[u8]) -> Result<Self, StateError> {
        let (model, file) = StateFile::read::<Model>(bytes)?;
        Ok(Self { model, parameters: file.parameters })
    }

    /// Returns the digest of the training table.
    pub(super) fn table(&self) -> &[u8; 32] {
        &self.model.table
    }

    /// Returns true if the model belongs to the secondary with this number, from 1, in a run with these
    /// settings.
    pub fn is_of(&self, number: usize, settings: &CommonSettings) -> bool {
        self.model.number == number && self.model.settings == settings.to_toml()
    }

    /// Returns the preparation of records for the model; refuses the model of another party or of other
    /// settings.
    pub(super) fn preparing(
        &self,
        terms: &Terms,
        settings: &CommonSettings,
    ) -> Result<Preparing, SecondaryError> {
        if !self.is_of(terms.number, settings) {
            return Err(StateError::OtherRun.into());
        }
        Ok(self.model.preparing.clone())
    }

    /// Returns the preparation of records for training that begins with the model; refuses another party's
    /// model.
    pub(super) fn beginning(&self, terms: &Terms) -> Result<Preparing, SecondaryError> {
        let Model { party, number, preparing, .. } = &self.model;
        if (party, *number) != (&terms.name, terms.number) {
            return Err(SecondaryError::OtherModel { party: party.clone(), number: *number });
        }
        Ok(preparing.clone())
    }
}
