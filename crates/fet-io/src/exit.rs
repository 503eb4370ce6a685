//! Exit codes of commands that fail.

use std::io;

use crate::input::InputError;

/// Exit code of a command that may succeed later.
pub const TEMPORARY: u8 = 75;

/// Returns the exit code for an error: 2 for invalid input, [`TEMPORARY`] for a full disk, 1 for anything else.
pub fn code(error: &anyhow::Error) -> u8 {
    match () {
        () if is_full(error) => TEMPORARY,
        () if error.is::<InputError>() => 2,
        () => 1,
    }
}

/// Returns true if a disk is full or its quota is used up, here or, as its message shows, at another party.
fn is_full(error: &anyhow::Error) -> bool {
    let full = |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let here = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let text = format!("{error:#}");
    here.map(io::Error::kind).any(full) || words().iter().any(|words| text.contains(words.as_str()))
}

/// Returns the messages of the operating system for a full disk and for a used quota.
fn words() -> Vec<String> {
    #[cfg(unix)]
    const CODES: &[i32] = if cfg!(target_os = "macos") { &[28, 69] } else { &[28, 122] };
    #[cfg(not(unix))]
    const CODES: &[i32] = &[112, 1295];
    CODES.iter().map(|code| io::Error::from_raw_os_error(*code).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;
    use crate::input::input;

    #[test]
    fn distinguishes_temporary_from_lasting_errors() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let said = &words()[0];
        for (error, expected) in [
            (input("no file"), 2),
            (anyhow::anyhow!("diverged"), 1),
            (full().into(), 75),
            (Err::<(), _>(full()).context("cannot write x").unwrap_err(), 75),
            (input(format!("x cannot be written: {said}")), 75),
            (anyhow::anyhow!("party \"p\", Save: cannot write x: {said}"), 75),
            (io::Error::from(io::ErrorKind::PermissionDenied).into(), 1),
        ] {
            assert_eq!(code(&error), expected, "{error:#}");
        }
    }
}
