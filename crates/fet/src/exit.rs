//! Exit codes of commands that fail.

use fet_benchmark::BenchmarkError;
use fet_io::exit::TEMPORARY;

use crate::parties::Unreached;
use crate::run;

/// Returns the exit code for an error: that of [`fet_io::exit::code`], and [`TEMPORARY`] for a party or a package index that cannot
/// be reached, and for a party that is busy or has to start again.
pub fn code(error: &anyhow::Error) -> u8 {
    let unreached = error.is::<Unreached>() || error.downcast_ref().is_some_and(BenchmarkError::is_temporary);
    match (unreached, run::party_error(error)) {
        (true, _) => TEMPORARY,
        (false, Some(party)) if party.is_restart() || party.is_not_now() => TEMPORARY,
        (false, _) => fet_io::exit::code(error),
    }
}
