//! Evaluation of a model: metrics, intervals, splits of the rows, and the records of a run.
//!
//! | module | answers |
//! |---|---|
//! | [`metric`], [`predictions`], [`scores`] | how good are these predictions, by every metric of the task |
//! | [`calibration`], [`confusion`] | are the probabilities right; which class is taken for which |
//! | [`evaluation`] | all of this in one value, for a report |
//! | [`split`] | which rows are trained on, selected by and tested on |
//! | [`bootstrap`] | how far a metric may be off, given so few test rows |
//! | [`conformal`] | intervals and sets of classes that hold the truth with a stated probability |
//! | [`class_weights`] | how a loss weighs rare classes |
//! | [`shapley`], [`importance`] | what each party, or each column, contributes |
//! | [`records`] | the report and the events of a run, as other programs read them |
//!
//! Everything is plain `f64` on the host: no tensors, no files, no party. Random numbers come from a `ChaCha8Rng` that
//! the caller makes, so that this crate knows nothing of seeds and purposes. Metrics follow scikit-learn's definitions
//! and are tested against its figures (`tests/golden`).

pub mod bootstrap;
pub mod calibration;
pub mod class_weights;
mod classification;
pub mod conformal;
pub mod confusion;
pub mod evaluation;
pub mod importance;
pub mod metric;
mod nullable;
pub mod predictions;
mod probability;
mod ranking;
pub mod records;
mod regression;
mod reweighted;
pub mod scores;
pub mod shapley;
pub mod split;
mod undefined;

pub use bootstrap::Interval;
pub use calibration::Bin;
pub use confusion::Confusion;
pub use evaluation::{Estimate, Evaluation, Group, Groups, Others, Quantile, Residuals};
pub use fet_io::did_you_mean;
pub use metric::{Direction, Metric, Task, Unit};
pub use predictions::{PredictionError, Predictions};
pub use scores::{Scores, Value};
pub use split::{Fractions, Split, SplitError, Strategy};
pub use undefined::Undefined;

pub use rand_chacha::ChaCha8Rng;
pub use rand_chacha::rand_core::SeedableRng;
