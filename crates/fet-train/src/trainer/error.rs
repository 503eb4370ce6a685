//! Why a run ends before its time.

use fet_privacy::secure_sum::{BudgetError, CollectError};

use crate::federation::PartyError;
use crate::privacy::ProtectionError;
use crate::state_file::StateError;
use fet_core::data::DataError;
use fet_core::linker::LinkError;
use fet_core::parameters::ParameterError;
use fet_core::registry::Violation;

/// Why a run ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A setting that only shows to be impossible against the data or another setting.
    #[error(transparent)]
    Settings(#[from] Violation),
    /// The data cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The run cannot be protected as the settings ask.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    /// A party did not do its part.
    #[error(transparent)]
    Party(#[from] PartyError),
    /// The primary's own keys cannot be concealed, or a challenge not be answered.
    #[error("linking with party \"{party}\": {source}")]
    Link {
        /// The party's name.
        party: String,
        /// Why.
        source: LinkError,
    },
    /// The primary's state cannot be kept or used.
    #[error(transparent)]
    State(#[from] StateError),
    /// Parameters do not fit the model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A secret sum could not be had.
    #[error(transparent)]
    Sum(#[from] CollectError),
    /// A secret sum has no room for what is to be summed.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The loss is no number any more.
    #[error("training diverged: the loss is {loss} in epoch {epoch}; a smaller `learning_rate` may help")]
    Diverged {
        /// The epoch, from 1.
        epoch: usize,
        /// The loss.
        loss: f64,
    },
    /// Someone asked to stop.
    #[error("interrupted in epoch {epoch}")]
    Interrupted {
        /// The epoch, from 1.
        epoch: usize,
    },
}
