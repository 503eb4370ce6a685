//! Records that `fet` writes for other programs: the report of a run, its progress events, and the questions
//! and answers of `fet show --batch`.
//!
//! The writer and all readers share these types, so that a renamed field is a compile error on both sides. A
//! record must have every field and no other field; deserialization fills in no defaults. The crate computes
//! nothing and opens no files. It re-exports the types of `fet-scores` that appear in a report.

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

/// Version of the program's results. Programs with the same number give the same figures, up to rounding, for
/// the same settings, seed, data and device. If results change, increase the number and list the change under
/// "Changed results" in CHANGELOG.md; `cargo xtask ablate` then computes every cell again.
pub const RESULTS_VERSION: u32 = 7;
