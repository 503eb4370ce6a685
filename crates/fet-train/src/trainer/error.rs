//! Why a run ends before its time.

use fet_privacy::secure_sum::{BudgetError, CollectError};

use crate::secondary::SecondaryError;
use fet_core::data::DataError;
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
    /// A party could not do its part.
    #[error("party \"{party}\": {source}")]
    Party {
        /// Its name.
        party: String,
        /// Why.
        source: SecondaryError,
    },
    /// Parties could not do their part.
    #[error(transparent)]
    Secondary(#[from] SecondaryError),
    /// Parameters do not fit the model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A secret sum could not be had.
    #[error(transparent)]
    Sum(#[from] CollectError),
    /// A secret sum has no room for what is to be summed.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A party is gone whose part was needed.
    #[error("secondary {party} does not answer any more")]
    Gone {
        /// The party, from 1.
        party: usize,
    },
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
