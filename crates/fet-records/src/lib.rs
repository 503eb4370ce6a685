//! The records that `fet` writes and other programs read: the report of a run, the progress events of a run, and the
//! questions and answers of `fet show --batch`.
//!
//! Writer and readers use these types, so that a renamed field is a compile error on both sides. When a record is read,
//! every field must be there and no other may be: nothing is filled in. Nothing is computed here, and no file is opened.
//! What a model reached is in the words of `fet-scores`, whose types that stand in a report are re-exported.

mod attack;
mod event;
mod nullable;
mod privacy;
mod report;
mod show;

pub use attack::{AttackRecord, Attacker, Measure, Target};
pub use event::Event;
pub use fet_scores::{
    Bin, Confusion, Direction, Estimate, Evaluation, Group, Groups, Interval, Metric, Others, Quantile,
    Residuals, Scores, Value,
};
pub use privacy::{Guarantee, LabelPrivacy, Learning, Neighbouring, Randomness, Spent};
pub use report::{
    Best, Cost, DataRecord, EpochReport, PartyTraffic, Phases, Program, Report, Rows, TableDigest, Traffic,
};
pub use show::{Answer, Identity, Question};

/// The version of the program's results: the same settings, seed, data and device give the same figures, but for
/// rounding, in every program with this number. If results change, increase it and say so under "Changed results" in
/// CHANGELOG.md; `cargo xtask ablate` then computes every cell again.
pub const RESULTS_VERSION: u32 = 8;
