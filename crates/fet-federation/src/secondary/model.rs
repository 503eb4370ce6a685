//! A party's finished model: its best parameters, and how its records were prepared for them. It is the party's own file.

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
    /// The common settings that it was trained with.
    pub(super) settings: String,
    pub(super) preparing: Preparing,
    /// The digest of the table that it was trained on.
    pub(super) table: [u8; 32],
}

/// A finished model that a party serves.
#[derive(Debug, Clone)]
pub struct Finished {
    model: Model,
    /// Its parameters by name.
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

    /// The digest of the table that it was trained on.
    pub(super) fn table(&self) -> &[u8; 32] {
        &self.model.table
    }

    /// Whether it is of the secondary of this number, from 1, in a run of these settings.
    pub fn is_of(&self, number: usize, settings: &CommonSettings) -> bool {
        self.model.number == number && self.model.settings == settings.to_toml()
    }

    /// How records are prepared for it; refuses another party's model, or one of other settings.
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

    /// How records are prepared where training goes on from it; refuses another party's model.
    pub(super) fn beginning(&self, terms: &Terms) -> Result<Preparing, SecondaryError> {
        let Model { party, number, preparing, .. } = &self.model;
        if (party, *number) != (&terms.name, terms.number) {
            return Err(SecondaryError::OtherModel { party: party.clone(), number: *number });
        }
        Ok(preparing.clone())
    }
}
