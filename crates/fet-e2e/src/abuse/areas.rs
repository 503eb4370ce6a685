//! Areas of abuse, each a table of cases. A case that found a fault remains in its table.

mod argument;
mod cache;
mod columnar;
mod experiment;
mod memory;
mod output;
mod path;
mod pipe;
mod run_folder;
mod setting;
mod signal;
mod source;
mod table;

use std::path::Path;

use super::base::Bases;
use super::script::Script;

/// Returns the scripts of all cases, area by area.
pub(crate) fn all(fet: &Path, bases: &Bases, logs: &Path, seed: u64) -> anyhow::Result<Vec<Script>> {
    Ok([
        experiment::cases(seed),
        setting::cases(fet, bases, logs)?,
        table::cases(seed),
        source::cases(seed),
        columnar::cases(),
        run_folder::cases(seed),
        cache::cases(seed),
        output::cases(),
        signal::cases(seed),
        pipe::cases(),
        memory::cases(),
        path::cases(),
        argument::cases(),
    ]
    .concat())
}
