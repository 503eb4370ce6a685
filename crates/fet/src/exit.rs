//! The exit code of a command that fails.

use std::io;

use crate::input::InputError;
use crate::parties::Unreached;
use crate::run;

/// The same command may succeed later.
const TEMPORARY: u8 = 75;

/// 2: invalid input; 75: what may pass, such as a party that cannot be reached or a full disk; 1: anything else.
pub fn code(error: &anyhow::Error) -> u8 {
    let restart = || run::party_error(error).is_some_and(|party| party.is_restart());
    if is_full(error) || error.is::<Unreached>() || restart() {
        return TEMPORARY;
    }
    if error.is::<InputError>() { 2 } else { 1 }
}

/// Whether a disk is full, or a quota of one is used up: here, or, by its words, at another party.
fn is_full(error: &anyhow::Error) -> bool {
    let full = |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let here = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let text = format!("{error:#}");
    here.map(io::Error::kind).any(full) || words().iter().any(|words| text.contains(words.as_str()))
}

/// The words of the system for a full disk and for a used quota.
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
    fn tells_what_may_pass_from_what_is_wrong() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let said = &words()[0];
        for (error, expected) in [
            (input("no file"), 2),
            (anyhow::anyhow!("diverged"), 1),
            (Unreached("gone".into()).into(), 75),
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
