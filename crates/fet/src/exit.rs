//! Exit codes of commands that fail.

use fet_io::exit::TEMPORARY;

use crate::parties::Unreached;
use crate::run;

/// Returns the exit code for an error: that of [`fet_io::exit::code`], and [`TEMPORARY`] for a party that cannot be reached or that
/// has to start again.
pub fn code(error: &anyhow::Error) -> u8 {
    let restart = || run::party_error(error).is_some_and(|party| party.is_restart());
    if error.is::<Unreached>() || restart() { TEMPORARY } else { fet_io::exit::code(error) }
}
