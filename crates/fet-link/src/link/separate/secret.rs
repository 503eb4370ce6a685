//! Secret of the data holders.

use zeroize::Zeroizing;

use fet_io::input::input;

/// Minimum length of a secret in bytes.
pub(super) const LEAST: usize = 16;

/// Maximum length of a variable name; a longer argument cannot be a name.
const MOST_NAME: usize = 64;

/// Returns a variable's name for a message, unless the name looks unusual, since the user may have passed the
/// secret by mistake.
fn name_for_message(name: &str) -> &str {
    let usual = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if usual { name } else { "that it names" }
}

/// Reads the data holders' secret from an environment variable. clkhash accepts shorter secrets; the command then
/// warns.
pub(super) fn secret(name: &str, of_clkhash: bool) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    // An argument that is not a name may be the secret itself, so the message must not repeat it.
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || !is_name || name.len() > MOST_NAME {
        return Err(input(format!(
            "--secret-env: must name an environment variable, with letters, digits and _; the argument has {} bytes \
             (do not pass the secret itself)",
            name.len()
        )));
    }
    let value = std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes).unwrap_or_default();
    let value = Zeroizing::new(value);
    if of_clkhash && (1..LEAST).contains(&value.len()) {
        fet_io::note!(
            "warning: the secret has only {} bytes; anyone who guesses it can test guesses of names. Use {LEAST} \
             random bytes.",
            value.len()
        );
    } else if value.len() < LEAST {
        return Err(input(format!(
            "--secret-env: the environment variable {} must hold the data holders' secret, {LEAST} bytes or more; it has {}",
            name_for_message(name),
            value.len()
        )));
    }
    Ok(value)
}
