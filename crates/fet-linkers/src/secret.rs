//! The parties' shared secret for an encoding, from the environment or, in a simulation, from the seed.
//!
//! The secret is never in an experiment file, so that no report can show it.

use fet_linkage::secret::derive;
use zeroize::Zeroizing;

use fet_core::linker::LinkError;
use fet_core::registry::Violation;

/// Minimum length of a shared secret, in bytes.
const LEAST: usize = 16;

/// Returns the secret for `purpose`, derived from the environment variable `name`, or from `seed` if `name`
/// is empty.
pub(super) fn secret(name: &str, seed: u64, purpose: &str) -> Result<Zeroizing<[u8; 32]>, LinkError> {
    if name.is_empty() {
        return Ok(derive(&seed.to_le_bytes(), purpose));
    }
    let value = Zeroizing::new(std::env::var(name).unwrap_or_default());
    if value.len() < LEAST {
        return Err(LinkError::Secret(format!(
            "`linker.secret_env`: the environment variable {name} must hold the parties' secret, {LEAST} bytes or more; \
             it has {}",
            value.len()
        )));
    }
    Ok(derive(value.as_bytes(), purpose))
}

/// Refuses invalid names of environment variables.
pub(super) fn check(name: &str) -> Result<(), Violation> {
    if name.contains(['=', '\0']) {
        let rule = "must name an environment variable, or be empty";
        return Err(Violation::new("secret_env", rule, format!("\"{name}\"")));
    }
    Ok(())
}
