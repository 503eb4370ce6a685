//! Records that `fet` writes and other programs read: the report of a run, the progress events of a run, and the questions and
//! answers of `fet show --batch`. `docs/other-programs.md` describes them for programs in other languages.
//!
//! Writers and readers use the same types, so a renamed field is a compile error on both sides. A record that is read has no
//! unknown field. A record of `fet` has every field; events, and the records of other programs, may lack some.

mod attack;
mod event;
mod privacy;
mod program;
mod release;
mod report;
mod show;

pub use attack::{AttackRecord, Attacker, Measure, Target};
pub use event::RunEvent;
pub use privacy::{Guarantee, LabelPrivacy, Learning, Neighbouring, Randomness, Spent};
pub use program::{ProgramBest, ProgramCost, ProgramEpoch, ProgramIdentity, ProgramReport};
pub use release::{CodeRecord, GateRecord, PartyRelease, ReleaseRecord, TableRelation};
pub use report::{
    Best, Cost, DataRecord, EpochReport, PartyTraffic, Phases, Program, Report, Rows, TableDigest, Traffic,
};
pub use show::{RunIdentity, ShowAnswer, ShowQuestion};

/// Version of the program's results. Programs with the same version compute the same figures from the same settings, seed, data and
/// device, except for rounding. A change of results increases it and is listed under "Changed results" in CHANGELOG.md; `cargo xtask
/// ablate` then computes every cell again.
pub const RESULTS_VERSION: u32 = 13;
