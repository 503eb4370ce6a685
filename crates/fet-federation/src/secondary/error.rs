//! The reasons for which a secondary refuses a request.

use fet_core::linker::LinkError;
use fet_core::message::Round;
use fet_core::parameters::ParameterError;
use fet_core::registry::Violation;
use fet_privacy::secure_sum::{BudgetError, SumError};

use crate::lifetime::Older;
use crate::privacy::ProtectionError;
use crate::state_file::StateError;

/// Why a secondary could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecondaryError {
    /// A request came before it joined.
    #[error("it has not joined a run yet")]
    NotJoined,
    /// It has joined already.
    #[error("it has joined a run already; a party serves one run")]
    AlreadyJoined,
    /// The model that it is to begin with is another party's.
    #[error(
        "the model that it is to begin with is of the party \"{party}\", number {number}: the parties must be those of the earlier \
         run, in the same order"
    )]
    OtherModel {
        /// Whose model it is.
        party: String,
        /// Its number, from 1.
        number: usize,
    },
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
    /// It would scale its columns by statistics of its records, in which each record moves every row.
    #[error(
        "the {part} of \"{name}\" must have declared ranges where `privacy.kind` is \"{kind}\", since one record would move \
         every row through their mean and deviation: set `bounds` in `data` (dataset \"split\") or in the table's entry of \
         `data.secondaries` (\"linked\"), a range for each column that is public knowledge, not computed from the records, \
         `dates` for dates and `categories` for categories"
    )]
    NoBounds {
        /// `keys` or `features`.
        part: &'static str,
        /// Its table.
        name: String,
        /// The privacy mechanism.
        kind: String,
    },
    /// A message that does not fit the terms.
    #[error("`{field}` {rule}; it is {value}")]
    Message {
        /// The field of the message.
        field: &'static str,
        /// The rule.
        rule: String,
        /// Its value.
        value: String,
    },
    /// A setting that is impossible for its table.
    #[error(transparent)]
    Settings(#[from] Violation),
    /// The run cannot have the protection that the settings ask for.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    /// Its records cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Its own keys cannot be linked; why is told to its operator alone.
    #[error("a key of its own cannot be used by the linker; its operator was told which, and why")]
    UnusableKeys,
    /// Its records cannot be prepared; why is told to its operator alone.
    #[error("its own records cannot be prepared for a model; its operator was told why")]
    UnusableRecords,
    /// It serves a finished model.
    #[error("it serves a finished model: it answers requests for predictions, and no others")]
    OnlyPredictions,
    /// Parameters do not fit its model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Similarities were asked for, but the linker gives none.
    #[error("similarities were asked for, but the linker gives none")]
    NoSimilarities,
    /// Keys were sent a second time, whether or not the first could be linked.
    #[error("it has linked already, or tried to; a run links once")]
    LinkedAlready,
    /// An answer came to a challenge that was not posed.
    #[error("an answer came to a challenge that was not posed")]
    NoChallenge,
    /// A representation was asked for before the keys were linked.
    #[error("a representation was asked for before the keys were linked")]
    NotLinked,
    /// Predictions are releases, and no account covers them.
    #[error(
        "a prediction is a release that the run's privacy account does not count: `privacy.kind` must be \"none\""
    )]
    UncountedPrediction,
    /// New rows were to get the records of the run's rows.
    #[error(
        "the linker \"{linker}\" goes by the order of rows, and the party has only the records of the run's own rows: new rows need \
         records of their own, in the same order. Give the party a table of these (`fet predict --data FOLDER`, or `data.file` \
         of a party elsewhere), or train with a linker that compares keys"
    )]
    NoNewRecords {
        /// Its kind.
        linker: String,
    },
    /// A value outside the range of a secret sum.
    #[error(
        "a {what} holds a value outside the range of sums, ±{range}: bound it by a privacy mechanism, or \
         raise `aggregator.range`"
    )]
    OutOfRange {
        /// What holds it.
        what: &'static str,
        /// The largest absolute value in range.
        range: f64,
    },
    /// The form of a secret sum is invalid.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The operating system gave no randomness for keys.
    #[error("the operating system gave no randomness for keys: {0}")]
    NoRandomness(String),
    /// Neighbours must be chosen for each batch, but the linker conceals keys.
    #[error(
        "`linker.kind` must be one that sends keys in the clear where `privacy.sample_rate` or \
         `privacy.max_occurrences` requires new neighbours for each batch"
    )]
    SealedSelection,
    /// A secret sum over one party.
    #[error("a secret sum over one party was asked for: the sum would be its value")]
    Alone,
    /// What its part in secure sums refuses.
    #[error(transparent)]
    Sum(#[from] SumError),
    /// A prediction would need a secure sum of its own.
    #[error("predictions are not made by secure sums yet: `aggregator.kind` must be one that sees the parts")]
    SummedPrediction,
    /// Its policy forbids what the settings ask for.
    #[error("its policy forbids the run: `policy.{field}` {rule}; it is {value}")]
    Policy {
        /// The setting of the policy.
        field: &'static str,
        /// The rule.
        rule: String,
        /// What the run would have.
        value: String,
    },
    /// A release by which its account would pass what it agreed to.
    #[error("its account refuses the release: {what} {rule}; it is {value}")]
    Spent {
        /// What is counted.
        what: &'static str,
        /// The rule.
        rule: String,
        /// What it would be.
        value: String,
    },
    /// A sample of records was to leave with other values than before.
    #[error(
        "an earlier session released {round} with the same sample of records and other values, as another processor or \
         device computes them: `privacy.amplification` counts one release of a sample. Resume the run on the machine that \
         began it, or begin a run with another `seed`"
    )]
    SampledAlready {
        /// The round of the release.
        round: Round,
    },
    /// Another party's lifetime account is an old copy.
    #[error("party {party}: {source}")]
    OldAccount {
        /// The party's number, from 1.
        party: usize,
        /// Its age now and before.
        source: Older,
    },
    /// A state was to be put back after something was released.
    #[error("a saved state can only be restored before anything is released in a session")]
    LoadedLate,
    /// The rows cannot be divided.
    #[error(transparent)]
    Data(#[from] fet_core::data::DataError),
    /// A gradient came, but no training representation of its round was sent.
    #[error("a gradient for {round} came, but no training representation of that round was sent")]
    NothingToLearn {
        /// The round of the gradient.
        round: Round,
    },
    /// The method averages no parameters.
    #[error("averaged parameters were asked for, but the method averages none")]
    NothingShared,
    /// Its state cannot be saved or restored.
    #[error(transparent)]
    State(#[from] StateError),
}
