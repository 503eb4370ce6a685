//! Exit codes of commands that fail.

use fet_benchmark::BenchmarkError;
use fet_io::exit::TEMPORARY;

use crate::parties::Unreached;
use crate::run;

/// Returns the exit code for an error: that of [`fet_io::exit::code`], and [`TEMPORARY`] for a party or a package index that cannot
/// be reached, and for a party that has to start again.
pub fn code(error: &anyhow::Error) -> u8 {
    let restart = || run::party_error(error).is_some_and(|party| party.is_restart());
    let unreached = error.is::<Unreached>() || error.downcast_ref().is_some_and(BenchmarkError::is_temporary);
    if unreached || restart() { TEMPORARY } else { fet_io::exit::code(error) }
}
