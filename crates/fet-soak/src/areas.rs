//! The areas, each a table of cases. A case that found a fault stays.

mod capture;
mod equal;
mod kill;
mod path;
mod predict;
mod refusal;

use crate::case::Case;

/// Every case, area by area.
pub fn all() -> Vec<Case> {
    [equal::cases(), refusal::cases(), capture::cases(), kill::cases(), predict::cases(), path::cases()]
        .into_iter()
        .flatten()
        .collect()
}
