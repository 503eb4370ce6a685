//! Fixed-point form of secure aggregation: the units per 1, and the check that a sum fits.

use fet_core::aggregator::SecureSum;
use fet_core::privacy::Form;
use fet_privacy::secure_sum::{BudgetError, Units};
use sha2::{Digest, Sha256};

/// Returns the fixed-point form of a sum over `active` parties; refuses a sum that could wrap around.
pub fn units(sum: SecureSum, form: Option<Form>, active: usize) -> Result<Units, BudgetError> {
    match form {
        None => Units::finest(sum.bits, sum.range * active as f64, FINEST),
        Some(Form { bound, noise, scale: Some(scale) }) => Units::new(scale, sum.bits, bound, noise),
        Some(Form { bound, noise, scale: None }) => {
            Units::finest(sum.bits, bound + fet_privacy::noise::REACH * noise, FINEST)
        }
    }
}

/// Returns the form of sums of parameters: 64 bits, so that the floats lose no precision.
pub fn parameters(active: usize) -> Result<Units, BudgetError> {
    Units::finest(64, PARAMETER_RANGE * active as f64, 40)
}
/// Finest unit, 2^-30: finer units are below the precision of the floats.
const FINEST: i32 = 30;
/// Largest absolute value of an averaged parameter.
pub(crate) const PARAMETER_RANGE: f64 = 65_536.0;

/// Purpose of a mask within a round: it hides representations.
pub(crate) const REPRESENTATION: u32 = 0;
/// Purpose of a mask within a round: it hides parameters.
pub(crate) const PARAMETERS: u32 = 1;

/// Returns the digest that identifies a sum of representations: the rows, and the shape of their blocks.
pub fn over_rows(rows: &[u32], shape: [usize; 3]) -> [u8; 32] {
    let mut hash = Sha256::new().chain_update(b"fet sum of representations, 1");
    shape.iter().for_each(|&size| hash.update((size as u64).to_le_bytes()));
    rows.iter().for_each(|row| hash.update(row.to_le_bytes()));
    hash.finalize().into()
}

/// Returns the digest that identifies a sum of `length` parameters.
pub(crate) fn over_parameters(length: usize) -> [u8; 32] {
    let hash = Sha256::new().chain_update(b"fet sum of parameters, 1");
    hash.chain_update((length as u64).to_le_bytes()).finalize().into()
}
