//! The fixed-point form of secure sums: the units per 1, and whether a sum fits.

use fet_core::aggregator::SecureSum;
use fet_core::privacy::Form;
use fet_privacy::secure_sum::{BudgetError, Units};

/// The fixed-point form of a sum over `active` parties; refuses one that could wrap around.
pub fn units(sum: SecureSum, form: Option<Form>, active: usize) -> Result<Units, BudgetError> {
    match form {
        None => Units::finest(sum.bits, sum.range * active as f64, FINEST),
        Some(Form { bound, noise, scale: Some(scale) }) => Units::new(scale, sum.bits, bound, noise),
        Some(Form { bound, noise, scale: None }) => {
            Units::finest(sum.bits, bound + fet_privacy::noise::REACH * noise, FINEST)
        }
    }
}

/// The form of sums of parameters: 64 bits, so that the floats lose no precision.
pub fn parameters(active: usize) -> Result<Units, BudgetError> {
    Units::finest(64, PARAMETER_RANGE * active as f64, 40)
}
/// Units finer than 2^-30 are below the precision of the floats.
const FINEST: i32 = 30;
/// The largest absolute value of an averaged parameter.
pub(crate) const PARAMETER_RANGE: f64 = 65_536.0;
