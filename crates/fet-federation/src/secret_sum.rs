//! The fixed-point form of secure sums: the units per 1, and whether a sum fits.

use fet_core::aggregator::SecureSum;
use fet_core::privacy::Form;
use fet_privacy::secure_sum::{BudgetError, Units};
use sha2::{Digest, Sha256};

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

/// Which values of a round a mask hides: representations,
pub(crate) const REPRESENTATION: u32 = 0;
/// or parameters.
pub(crate) const PARAMETERS: u32 = 1;

/// A digest of what a sum of representations is over: these rows, in blocks of this shape.
pub fn over_rows(rows: &[u32], shape: [usize; 3]) -> [u8; 32] {
    let mut hash = Sha256::new().chain_update(b"fet sum of representations, 1");
    shape.iter().for_each(|&size| hash.update((size as u64).to_le_bytes()));
    rows.iter().for_each(|row| hash.update(row.to_le_bytes()));
    hash.finalize().into()
}

/// A digest of what a sum of parameters is over: so many of them.
pub(crate) fn over_parameters(length: usize) -> [u8; 32] {
    let hash = Sha256::new().chain_update(b"fet sum of parameters, 1");
    hash.chain_update((length as u64).to_le_bytes()).finalize().into()
}
