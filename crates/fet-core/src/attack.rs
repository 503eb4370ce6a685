//! The `Attack` slot: what a party learns from a run, or does to it, that the others did not agree to.
//!
//! An attack trains runs in an [`Arena`], where it plays one party: the primary, which sees what the aggregator gets
//! ([`View`]), or a secondary, whose own door it stands in ([`Door`]). It has that party's own data, and the ground truth to
//! be measured against. It is registered and chosen like every plug-in; plug-ins are in `fet-attacks`.

use std::sync::{Arc, Mutex};

use crate::data::{Matrix, Task, VerticalData};
use crate::message::{Block, Reply, Request, Round};
use crate::registry::{Plugin, SlotKind, Violation};

pub use fet_eval::records::{AttackRecord, Attacker, Measure, Target};

/// An attack on a run.
///
/// Laws, checked by the contract suite for every plug-in: the same arena gives the same figures; every figure is finite; an
/// attack that trains nothing but the experiment itself leaves its result as it is.
pub trait Attack: Send + Sync {
    /// Who attacks, and what it is after.
    fn about(&self) -> About;

    /// Refuses an experiment that the attack says nothing about, before anything trains.
    fn check(&self, _setting: &Setting) -> Result<(), Violation> {
        Ok(())
    }

    /// Attacks; the first measure is its result.
    fn attack(&self, arena: &mut dyn Arena) -> Result<Vec<Measure>, AttackError>;
}

/// Who attacks, and what it is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Who.
    pub attacker: Attacker,
    /// What.
    pub target: Target,
    /// The attacked secondary, or the attacking one, from 1.
    pub party: usize,
}

/// What is known of an experiment before it trains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The kind of label.
    pub task: Task,
    /// The number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// The number of secondaries.
    pub secondaries: usize,
    /// The seed.
    pub seed: u64,
    /// Whether secondaries learn, that is, receive gradients.
    pub learning: bool,
    /// Whether the aggregator sees sums alone.
    pub summed: bool,
}

/// Trains runs of one experiment on tables of the attack's choice.
pub trait Arena {
    /// What is known before it trains.
    fn setting(&self) -> &Setting;

    /// The tables of all parties: an attacker's own, and the ground truth for measuring.
    fn data(&self) -> &VerticalData;

    /// Trains one run.
    fn train(&mut self, run: Run) -> Result<Box<dyn Trained>, AttackError>;
}

/// How an attacker takes part in a run.
#[derive(Clone, Default)]
pub struct Run {
    /// What a secondary, from 1, does with the messages at its own door.
    pub door: Option<(usize, Arc<Mutex<dyn Door>>)>,
    /// What looks at all that the primary receives.
    pub view: Option<Arc<Mutex<dyn View>>>,
    /// Other tables than the experiment's.
    pub data: Option<VerticalData>,
    /// What a secondary, from 1, has in place of its features when test rows are evaluated, or where every row is released once.
    pub tested: Option<(usize, Matrix<f32>)>,
    /// Whether to leave the noise out: an attacker that trains shadow runs knows that it is there, and need not draw it.
    pub quiet: bool,
    /// Whether to stop once the parties have linked: models are as they were drawn.
    pub untrained: bool,
    /// Whether the primary sends no gradients and no averages, so that the secondaries' models stay as they were drawn. A
    /// secondary does not notice.
    pub withhold: bool,
}

/// The door of an attacking secondary: its own program may change what it gets and what it sends.
pub trait Door: Send {
    /// A request, before the honest program has it.
    fn request(&mut self, _request: &mut Request) {}

    /// The honest program's reply, before it leaves. A mask or noise is on it already.
    fn reply(&mut self, _request: &Request, _reply: &mut Reply) {}
}

/// The eyes of an attacking primary.
pub trait View: Send {
    /// What arrived for these rows from the active parties (from 0, ascending): the part of each, or their sum alone.
    fn received(&mut self, _round: Round, _rows: &[usize], _active: &[usize], _parts: &[Block]) {}

    /// What the model made of rows of an evaluation: activated outputs, [n, outputs].
    fn predicted(&mut self, _round: Round, _rows: &[usize], _outputs: &Matrix<f32>) {}
}

/// A finished run.
pub trait Trained {
    /// The test metric of the best epoch; not a number where nothing was trained.
    fn metric(&self) -> f64;

    /// The training, validation and test rows.
    fn rows(&self) -> [&[usize]; 3];

    /// The secondary's features of the record most similar to each of these rows, scaled as its model sees them: the ground
    /// truth of a reconstruction, and what a secondary has of its own. Parties count from 1.
    fn features(&self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError>;

    /// The keys of that record, scaled in the same way.
    fn keys(&self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError>;

    /// The secondary's records, from 0, that are shown for each of these rows, most similar first. Where records are chosen for
    /// each release there can be none.
    fn shown(&self, party: usize, rows: &[usize]) -> Result<Vec<Vec<usize>>, AttackError>;

    /// The first of them.
    fn nearest(&self, party: usize, rows: &[usize]) -> Result<Vec<Option<usize>>, AttackError> {
        Ok(self.shown(party, rows)?.into_iter().map(|all| all.first().copied()).collect())
    }

    /// How similar it is; nothing where the linker does not say.
    fn similarity(&self, party: usize, rows: &[usize]) -> Result<Option<Vec<f32>>, AttackError>;

    /// What a secondary's model makes of the neighbours of these rows, before any bounding, noise or mask: only itself
    /// knows. [n, K·H].
    fn encoded(&mut self, party: usize, rows: &[usize]) -> Result<Matrix<f32>, AttackError>;

    /// The primary's own columns, keys and features, as its model sees them.
    fn own(&self, rows: &[usize]) -> Matrix<f32>;
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttackError {
    /// The experiment does not fit the attack.
    #[error(transparent)]
    Refused(#[from] Violation),
    /// A run failed.
    #[error("a run of the attack failed: {0}")]
    Run(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The user stopped it.
    #[error("the attack was interrupted")]
    Interrupted,
}

impl SlotKind for dyn Attack {
    const SLOT: &'static str = "attack";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Attack>);
