//! Meaning of the settings of salting by a stable attribute, and their checks.

use fet_core::linker::LinkError;
use fet_core::registry::Violation;
use fet_linkage::clk::Salt;

/// Returns the salt of a column by its number, from 1; 0 for none.
pub(super) fn from_settings(column: usize, signs: usize) -> Option<Salt> {
    column.checked_sub(1).map(|column| Salt { column, signs })
}

/// Refuses a number of characters without a column.
pub(super) fn check(column: usize, signs: usize) -> Result<(), Violation> {
    if column == 0 && signs > 0 {
        let rule = "must be 0 unless `salt_column` names a column";
        return Err(Violation::new("salt_signs", rule, signs));
    }
    Ok(())
}

/// Refuses a column that is not among `fields`.
pub(super) fn fits(column: usize, fields: usize) -> Result<(), LinkError> {
    if column > fields {
        return Err(LinkError::Column { setting: "salt_column", column, fields });
    }
    Ok(())
}
