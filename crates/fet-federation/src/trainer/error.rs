//! Reasons why a run fails.

use fet_privacy::secure_sum::{BudgetError, CollectError, KeyShareError};

use crate::federation::{PartyError, Problem};
use crate::privacy::ProtectionError;
use crate::release::ReleaseError;
use crate::state_file::StateError;
use fet_core::data::DataError;
use fet_core::linker::LinkError;
use fet_core::parameters::ParameterError;
use fet_core::registry::Violation;
use fet_io::memory::TooLarge;

/// Reason why a run failed or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A setting that is impossible with this data or another setting.
    #[error(transparent)]
    Settings(#[from] Violation),
    /// The model is too large for this machine.
    #[error("the model does not fit: {0} (make `method`, `encoder` or `train.batch_size` smaller)")]
    Memory(#[from] TooLarge),
    /// The data cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A release in the folder of its secondary cannot be used.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// The run cannot have the protection that the settings require.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    /// A party refused, dropped out, or sent an invalid reply.
    #[error(transparent)]
    Party(#[from] PartyError),
    /// The primary's own keys cannot be encoded, or a challenge cannot be answered.
    #[error("linking with party \"{party}\": {source}")]
    Link {
        /// The party's name.
        party: String,
        /// The problem.
        source: LinkError,
    },
    /// The primary's state cannot be saved or restored.
    #[error(transparent)]
    State(#[from] StateError),
    /// Parameters do not fit the model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A secure aggregation could not be computed.
    #[error(transparent)]
    Sum(#[from] CollectError),
    /// The mask of a party that dropped out cannot be reconstructed.
    #[error("a party dropped out while a secure sum was unmasked, and the sum is lost: {0}")]
    KeyShare(#[from] KeyShareError),
    /// A value is outside the range of secure aggregation.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The loss is not finite.
    #[error("training diverged: the loss is {loss} in epoch {epoch}; a smaller `learning_rate` may help")]
    Diverged {
        /// The epoch, from 1.
        epoch: usize,
        /// The loss.
        loss: f64,
    },
    /// The caller asked to stop.
    #[error("interrupted in epoch {epoch}")]
    Interrupted {
        /// The epoch, from 1.
        epoch: usize,
    },
}

impl RunError {
    /// Returns true if a party refused a release because its account allows no more.
    pub(super) fn is_spent(&self) -> bool {
        let Self::Party(PartyError { sent, problem }) = self else { return false };
        let spent = matches!(problem.as_ref(), Problem::Refused(refusal) if refusal.spent);
        // Only a refused release can have this cause.
        spent && sent.message == "Forward"
    }
}
