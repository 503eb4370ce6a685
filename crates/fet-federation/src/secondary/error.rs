//! Reasons for which a secondary refuses a request.

use fet_core::linker::LinkError;
use fet_core::message::Round;
use fet_core::parameters::ParameterError;
use fet_core::registry::Violation;
use fet_privacy::secure_sum::{BudgetError, SumError};

use crate::lifetime::OutdatedAccount;
use crate::privacy::ProtectionError;
use crate::state_file::StateError;

/// Reason why a secondary could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecondaryError {
    /// The party has not joined a run yet.
    #[error("it has not joined a run yet")]
    NotJoined,
    /// The party has joined a run already.
    #[error("it has joined a run already; a party serves one run")]
    AlreadyJoined,
    /// The starting model of the training belongs to another party.
    #[error(
        "the model that it should begin with belongs to the party \"{party}\", number {number}: the \
         parties must be those of the earlier run, in the same order"
    )]
    OtherModel {
        /// Name of the model's party.
        party: String,
        /// Number of the model's party, from 1.
        number: usize,
    },
    /// The program does not know the request.
    #[error("it does not know the request {name}")]
    Unknown {
        /// Name of the request.
        name: &'static str,
    },
    /// The terms differ from those that the party agrees to.
    #[error("`{field}` must be the same for all parties; the primary has {theirs}, this party has {ours}")]
    Terms {
        /// The setting.
        field: String,
        /// The primary's value.
        theirs: String,
        /// The party's own value.
        ours: String,
    },
    /// The party would scale its columns by statistics of its records, so that each record would move every
    /// row.
    #[error(
        "the {part} of \"{name}\" must have declared ranges if `privacy.kind` is \"{kind}\": otherwise \
         one record would move every row through the mean and deviation. Set `bounds` in `data` \
         (dataset \"split\") or in the table's entry of `data.secondaries` (\"linked\"): for each \
         column a range from public knowledge, not computed from the records, `dates` for dates and \
         `categories` for categories"
    )]
    NoBounds {
        /// `keys` or `features`.
        part: &'static str,
        /// Name of the party's table.
        name: String,
        /// Kind of the privacy mechanism.
        kind: String,
    },
    /// A message does not fit the terms.
    #[error("`{field}` {rule}; it is {value}")]
    Message {
        /// The field of the message.
        field: &'static str,
        /// The rule that the value breaks.
        rule: String,
        /// Value of the field.
        value: String,
    },
    /// A setting is impossible for the party's table.
    #[error(transparent)]
    Settings(#[from] Violation),
    /// The run cannot have the protection that the settings require.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    /// The party's records cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The party's own keys cannot be linked; only its operator learns the reason.
    #[error("the linker cannot use one of its keys; its operator has the details")]
    UnusableKeys,
    /// The code of the party's plug-in failed; only its operator learns the reason.
    #[error("the code of its plug-in failed; its operator has the details")]
    FailedCode,
    /// The party's records cannot be prepared; only its operator learns the reason.
    #[error("its own records cannot be prepared for a model; its operator has the details")]
    UnusableRecords,
    /// The party serves a finished model.
    #[error("it serves a finished model: it answers only requests for predictions")]
    OnlyPredictions,
    /// The run has a release, and the party takes no other part in it.
    #[error("it makes one release in this run (`[release]`), and takes no other part in it")]
    OnlyReleases,
    /// The primary asked for a second release in a session.
    #[error(
        "it has made its release in this session; a release for other keys or labels needs another session"
    )]
    OneRelease,
    /// The run has no release.
    #[error("the run has no `[release]`")]
    NoRelease,
    /// Parameters do not fit the party's model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// The primary requested similarities from a linker without any.
    #[error("the primary requested similarities, which the linker does not return")]
    NoSimilarities,
    /// Keys were sent a second time, after successful or failed linking.
    #[error("it has linked already, or tried to; a run links once")]
    LinkedAlready,
    /// An answer arrived without a challenge.
    #[error("an answer arrived without a challenge")]
    NoChallenge,
    /// The primary requested a representation before the keys were linked.
    #[error("the primary requested a representation before the keys were linked")]
    NotLinked,
    /// Predictions are releases, and the account of a training does not cover them.
    #[error(
        "a prediction is a release that the run's privacy account does not count: predict with the finished run, or set \
         `privacy.kind` to \"none\""
    )]
    UncountedPrediction,
    /// The guarantee by sampling does not cover predictions.
    #[error(
        "the run's `privacy.amplification` is proved for its planned releases alone, and predictions are other releases: train \
         without amplification"
    )]
    AmplifiedPrediction,
    /// The linker would link new rows to the records of the run's rows.
    #[error(
        "the linker \"{linker}\" links by the order of rows, and the party has only the records of the \
         run's own rows: new rows need their own records, in the same order. Give the party a table of \
         these records (`fet predict --data FOLDER`, or `data.file` of a remote party), or train with \
         a linker that compares keys"
    )]
    NoNewRecords {
        /// Kind of the linker.
        linker: String,
    },
    /// A value is outside the range of secure aggregation.
    #[error(
        "a {what} holds a value outside the range of sums, ±{range}: clip it with a privacy mechanism, \
         or raise `aggregator.range`"
    )]
    OutOfRange {
        /// Kind of the values.
        what: &'static str,
        /// Largest absolute value in range.
        range: f64,
    },
    /// The form of secure aggregation is invalid.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The operating system returned no randomness for keys.
    #[error("the operating system returned no randomness for keys: {0}")]
    NoRandomness(String),
    /// Neighbours must be chosen for each batch from keys that the linker encodes.
    #[error(
        "`linker.kind` must be one that sends keys in the clear if `privacy.sample_rate` or \
         `privacy.max_occurrences` requires new neighbours for each batch"
    )]
    SealedSelection,
    /// The primary requested secure aggregation over one party.
    #[error("the primary requested a secure sum over one party: the sum would be that party's value")]
    Alone,
    /// The party's secure aggregation refused.
    #[error(transparent)]
    Sum(#[from] SumError),
    /// The party's policy forbids the settings.
    #[error("its policy forbids the run: `policy.{field}` {rule}; it is {value}")]
    Policy {
        /// Setting of the policy.
        field: &'static str,
        /// The rule that the run breaks.
        rule: String,
        /// Value in the policy.
        value: String,
    },
    /// The release would exceed the cost that the party agreed to.
    #[error("its account refuses the release: {what} {rule}; it is {value}")]
    Spent {
        /// The counted quantity.
        what: &'static str,
        /// The rule that the release breaks.
        rule: String,
        /// Value of the quantity with the release.
        value: String,
    },
    /// A sample of records would leave with other values than before.
    #[error(
        "an earlier session released {round} with the same sample of records but other values, as \
         another processor or device computes them: `privacy.amplification` counts one release of a \
         sample. Resume the run on the machine that began it, or begin a run with another `seed`"
    )]
    SampledAlready {
        /// The round of the release.
        round: Round,
    },
    /// Another party's lifetime account is an old copy.
    #[error("party {party} of the roster: {source}")]
    OldAccount {
        /// The party's number, from 1.
        party: usize,
        /// Age of the account now and before.
        source: OutdatedAccount,
    },
    /// A state cannot be restored after a release.
    #[error("a saved state can only be restored before the first release of a session")]
    LoadedLate,
    /// The rows cannot be split.
    #[error(transparent)]
    Data(#[from] fet_core::data::DataError),
    /// A gradient arrived for a round without a training representation.
    #[error("a gradient arrived for {round}, for which the party sent no training representation")]
    NothingToLearn {
        /// The round of the gradient.
        round: Round,
    },
    /// The method averages no parameters.
    #[error("the primary requested averaged parameters from a method that averages none")]
    NothingShared,
    /// The party's state cannot be saved or restored.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Returns the first few items that a peer sent, so that a refusal does not repeat all of them.
pub(super) fn shortened<T: std::fmt::Debug>(all: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 8;
    let (count, first) = (all.len(), all.take(SHOWN).collect::<Vec<_>>());
    if count > SHOWN { format!("{first:?} and {} more", count - SHOWN) } else { format!("{first:?}") }
}
