//! Areas of the soak, each a table of cases. A case that found a fault remains in its table.

mod capture;
mod equal;
mod kill;
mod path;
mod predict;
mod refusal;
mod serve;
mod state;

use super::kit::Kit;
use crate::case::Case;

/// Returns all cases, area by area.
pub(crate) fn all() -> Vec<Case<Kit>> {
    [
        equal::cases(),
        refusal::cases(),
        capture::cases(),
        kill::cases(),
        state::cases(),
        predict::cases(),
        serve::cases(),
        path::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
