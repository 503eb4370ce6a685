//! Exit codes of commands that fail.

use std::io;

use crate::input::InputError;
use crate::parties::Unreached;
use crate::run;

/// Exit code of a temporary failure: the same command may succeed later.
const TEMPORARY: u8 = 75;

/// Returns the exit code of an error.
///
/// 2: invalid input. 75: a temporary failure, such as an unreachable party or a full disk. 1: any other
/// error.
pub fn code(error: &anyhow::Error) -> u8 {
    let restart = || run::party_error(error).is_some_and(|party| party.is_restart());
    if is_full(error) || error.is::<Unreached>() || restart() {
        return TEMPORARY;
    }
    if error.is::<InputError>() { 2 } else { 1 }
}

/// Returns true if a disk is full or a quota is used up, on this machine or at another party.
///
/// The function recognises the error of another party by its text.
fn is_full(error: &anyhow::Error) -> bool {
    let full = |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let here = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let text = format!("{error:#}");
    here.map(io::Error::kind).any(full) || words().iter().any(|words| text.contains(words.as_str()))
}

/// Returns the operating system's messages for a full disk and an exceeded quota.
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
