//! Metrics, splits and intervals for the evaluation of models.
//!
//! | module | purpose |
//! |---|---|
//! | [`metric`], [`predictions`], [`scores`] | every metric of the task |
//! | [`calibration`], [`confusion`] | calibration of probabilities, confusion matrix |
//! | [`evaluation`] | all metrics, intervals and errors in one value, for a report |
//! | [`split`] | training, validation and test rows |
//! | [`bootstrap`] | confidence intervals of metrics on few test rows |
//! | [`paired`] | difference between two variants, over test rows and over repetitions |
//! | [`conformal`] | intervals and sets of classes with a stated coverage |
//! | [`coverage`] | coverage on rows with known labels, by class and by decile of the prediction |
//! | [`drift`] | comparison of new values with earlier ones |
//! | [`class_weights`] | weights of rare classes in a loss |
//! | [`shapley`], [`importance`] | contribution of each party or column |
//!
//! All values are plain `f64` on the host: the crate knows no tensors, files or parties. The caller creates
//! the `ChaCha8Rng` for random numbers, so this crate does not manage seeds. Metrics follow scikit-learn's
//! definitions, and `tests/it/golden` compares them with scikit-learn's figures.

pub mod bootstrap;
pub mod calibration;
pub mod class_weights;
mod classification;
pub mod conformal;
pub mod confusion;
pub mod coverage;
pub mod drift;
pub mod evaluation;
pub mod importance;
pub mod metric;
mod nullable;
pub mod paired;
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
pub use coverage::{Coverage, Covered, Decile};
pub use evaluation::{Estimate, Evaluation, Group, Groups, Others, Quantile, Residuals};
pub use fet_io::did_you_mean;
pub use metric::{Direction, Metric, Task, Unit};
pub use predictions::{PredictionError, Predictions};
pub use scores::{ScoreValue, Scores};
pub use split::{Fractions, Split, SplitError, SplitStrategy};
pub use undefined::Undefined;

pub use rand_chacha::ChaCha8Rng;
pub use rand_chacha::rand_core::SeedableRng;
