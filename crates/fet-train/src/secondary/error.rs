//! Why a secondary refuses.

use fet_core::linker::LinkError;
use fet_core::message::Round;
use fet_core::parameters::ParameterError;
use fet_core::registry::Violation;
use fet_privacy::secure_sum::BudgetError;

use crate::privacy::ProtectionError;
use crate::state_file::StateError;

/// Why a secondary could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecondaryError {
    /// Something was asked of it before it joined.
    #[error("it has not joined a run yet")]
    NotJoined,
    /// It has joined already.
    #[error("it has joined a run already; a party serves one run")]
    AlreadyJoined,
    /// A request that this program does not know.
    #[error("it does not know the request {name}")]
    Unknown {
        /// Its name.
        name: &'static str,
    },
    /// The terms are not those that it would agree to.
    #[error("`{field}` must be the same for all parties; the primary has {theirs}, this party has {ours}")]
    Terms {
        /// The setting.
        field: String,
        /// The primary's value.
        theirs: String,
        /// The party's own value.
        ours: String,
    },
    /// A message that does not fit the terms.
    #[error("`{field}` {rule}; it is {value}")]
    Message {
        /// The field of the message.
        field: &'static str,
        /// The rule.
        rule: String,
        /// What it is.
        value: String,
    },
    /// A setting that its table shows to be impossible.
    #[error(transparent)]
    Settings(#[from] Violation),
    /// The run cannot be protected as the settings ask.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    /// Its records cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Parameters do not fit its model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Similarities are wanted of a linker that gives none.
    #[error("similarities are wanted of a linker that gives none")]
    NoSimilarities,
    /// Keys came a second time.
    #[error("it has linked already; a run links once")]
    LinkedAlready,
    /// An answer came to a challenge that was not posed.
    #[error("an answer came to a challenge that was not posed")]
    NoChallenge,
    /// Asked for a representation before it was linked.
    #[error("a representation was asked for before the keys were linked")]
    NotLinked,
    /// Predictions are releases, and no account covers them.
    #[error(
        "a prediction is a release that the run's privacy account does not count: `privacy.kind` must be \"none\""
    )]
    UncountedPrediction,
    /// A value that a secret sum has no room for.
    #[error(
        "a {what} holds {value}, and sums have room for {range}: bound it by a privacy mechanism, or raise \
         `aggregator.range`"
    )]
    OutOfRange {
        /// What holds it.
        what: &'static str,
        /// The value.
        value: f32,
        /// The largest absolute value there is room for.
        range: f64,
    },
    /// The form of a sum does not fit.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The system gives no randomness for keys.
    #[error("the system gives no randomness for keys: {0}")]
    NoRandomness(String),
    /// A secret sum was asked for before keys were agreed on.
    #[error("a secret sum was asked for before keys were agreed on")]
    NoKeys,
    /// Neighbours are to be chosen for each batch, and the linker seals whole tables.
    #[error(
        "`linker.kind` must be one that sends keys in the clear where `privacy.sample_rate` or \
         `privacy.max_occurrences` has neighbours chosen anew for each batch"
    )]
    SealedSelection,
    /// A secret sum over one party.
    #[error("a secret sum over one party was asked for: the sum would be its value")]
    Alone,
    /// A public key that no honest party has.
    #[error("the public key of party {party} is of small order: no honest party has such a key")]
    BadKey {
        /// The party, from 1.
        party: usize,
    },
    /// A gradient came without a training representation of its round before it.
    #[error("a gradient for {round} came without a training representation of that round before it")]
    NothingToLearn {
        /// The round of the gradient.
        round: Round,
    },
    /// The method averages no parameters.
    #[error("parameters were to be averaged, and the method averages none")]
    NothingShared,
    /// Its state cannot be kept or found.
    #[error(transparent)]
    State(#[from] StateError),
}
