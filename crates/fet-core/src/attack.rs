//! The `Attack` slot: measures the information that a party learns from a run, or the harm that it can do,
//! beyond the parties' agreement.
//!
//! An attack trains runs in an [`AttackEnvironment`], where it plays one party. As the primary it observes everything
//! that the aggregator receives ([`PrimaryObserver`]). As a secondary it changes the messages that it receives and sends
//! ([`MessageHook`]). The attack has the data of that party, and the ground truth for measuring its success. It is
//! registered and chosen like every plug-in; plug-ins are in `fet-attacks`.

use std::sync::{Arc, Mutex};

use crate::data::{Matrix, Task, VerticalData};
use crate::message::{Block, Reply, Request, Round};
use crate::registry::{Plugin, SlotKind, Violation};

pub use fet_eval::records::{AttackRecord, Attacker, Measure, Target};

/// An attack on a run.
///
/// Laws, checked by the contract suite for every plug-in: the same environment gives the same figures; every figure
/// is finite; an attack that trains only the experiment itself does not change the experiment's result.
pub trait Attack: Send + Sync {
    /// Returns the attacker and its target.
    fn about(&self) -> About;

    /// Returns the name of the attack in records if the plug-in's settings choose the attack; `None` for the kind of the plug-in.
    fn name(&self) -> Option<String> {
        None
    }

    /// Refuses an experiment that does not suit the attack, before anything trains.
    fn check(&self, _setting: &Setting) -> Result<(), Violation> {
        Ok(())
    }

    /// Runs the attack and returns its measures; the first measure is the result.
    fn attack(&self, environment: &mut dyn AttackEnvironment) -> Result<Vec<Measure>, AttackError>;
}

/// The attacker and its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The attacker.
    pub attacker: Attacker,
    /// The target.
    pub target: Target,
    /// Number of the attacked secondary, or of the attacking one, from 1.
    pub party: usize,
}

/// Properties of an experiment that are known before it trains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The kind of label.
    pub task: Task,
    /// Number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// Number of secondaries.
    pub secondaries: usize,
    /// Seed of the experiment.
    pub seed: u64,
    /// True if secondaries learn, that is, receive gradients.
    pub learning: bool,
    /// True if the aggregator sees only sums.
    pub summed: bool,
}

/// The attack environment: trains runs of one experiment on tables of the attack's choice.
pub trait AttackEnvironment {
    /// Returns the properties of the experiment that are known before it trains.
    fn setting(&self) -> &Setting;

    /// Returns the tables of all parties: the attacker's data, and the ground truth for measuring.
    fn data(&self) -> &VerticalData;

    /// Trains one run.
    fn train(&mut self, run: Run) -> Result<Box<dyn Trained>, AttackError>;
}

/// The attacker's part in a run.
#[derive(Clone, Default)]
pub struct Run {
    /// Number of the attacking secondary, from 1, and the hook that handles its messages.
    pub hook: Option<(usize, Arc<Mutex<dyn MessageHook>>)>,
    /// Observer of everything that the primary receives.
    pub observer: Option<Arc<Mutex<dyn PrimaryObserver>>>,
    /// Tables that replace the experiment's tables.
    pub data: Option<VerticalData>,
    /// Number of a secondary, from 1, and the features that replace its features while test rows are
    /// evaluated, or in the only release of a run that releases every row once.
    pub tested: Option<(usize, Matrix<f32>)>,
    /// True to leave out the noise: an attacker that trains shadow runs knows the distribution of the noise and need not draw it.
    pub quiet: bool,
    /// True to stop once the parties have linked: the models keep their initial weights.
    pub untrained: bool,
    /// True if the primary sends neither gradients nor averages, so that the secondaries' models keep their
    /// initial weights. A secondary does not notice.
    pub withhold: bool,
}

/// Malicious-party hook: lets an attacking secondary change the messages that it receives and sends.
pub trait MessageHook: Send {
    /// Changes a request before the honest program receives it.
    fn request(&mut self, _request: &mut Request) {}

    /// Changes the honest program's reply before it is sent. The reply already carries its mask or noise.
    fn reply(&mut self, _request: &Request, _reply: &mut Reply) {}
}

/// Observer of an attacking primary.
pub trait PrimaryObserver: Send {
    /// Receives the active parties' parts for these rows, or only their sum. The active parties count from 0,
    /// ascending.
    fn received(&mut self, _round: Round, _rows: &[usize], _active: &[usize], _parts: &[Block]) {}

    /// Receives the model's activated outputs for the rows of an evaluation, [n, outputs].
    fn predicted(&mut self, _round: Round, _rows: &[usize], _outputs: &Matrix<f32>) {}
}

/// A finished run.
pub trait Trained {
    /// Returns the test metric of the best epoch, or NaN if the run trained no model.
    fn metric(&self) -> f64;

    /// Returns the training, validation and test rows.
    fn rows(&self) -> [&[usize]; 3];

    /// Returns the secondary's features of the record most similar to each of these rows, scaled as its model
    /// sees them. They are the ground truth of a reconstruction, and the data of an attacking secondary.
    /// Parties count from 1.
    fn features(&self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError>;

    /// Returns the keys of that record, scaled in the same way.
    fn keys(&self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError>;

    /// Returns the secondary's records, from 0, that are shown for each of these rows, most similar first. If
    /// records are chosen for each release, a row can have none.
    fn shown(&self, party: usize, rows: &[usize]) -> Result<Vec<Vec<usize>>, AttackError>;

    /// Returns the first record that is shown for each row.
    fn nearest(&self, party: usize, rows: &[usize]) -> Result<Vec<Option<usize>>, AttackError> {
        Ok(self.shown(party, rows)?.into_iter().map(|all| all.first().copied()).collect())
    }

    /// Returns the similarity of the most similar record of each row, or `None` if the linker gives no
    /// similarities.
    fn similarity(&self, party: usize, rows: &[usize]) -> Result<Option<Vec<f32>>, AttackError>;

    /// Returns the representations that a secondary's model computes for these rows, before any clipping,
    /// noise or mask, [n, K·H]. Only the secondary knows them.
    fn encoded(&mut self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError>;

    /// Returns the primary's own columns, keys and features, as its model sees them.
    fn own_columns(&self, rows: &[usize]) -> Matrix<f32>;
}

/// Failure of an attack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttackError {
    /// The experiment does not fit the attack.
    #[error(transparent)]
    Refused(#[from] Violation),
    /// A run failed.
    #[error("a run of the attack failed: {0}")]
    Run(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The code of the attack failed; the text shows its place.
    #[error("{0}")]
    Code(String),
    /// The user stopped the attack.
    #[error("the attack was interrupted")]
    Interrupted,
}

impl SlotKind for dyn Attack {
    const SLOT: &'static str = "attack";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Attack>);
