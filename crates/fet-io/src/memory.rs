//! What memory there still is, so that what cannot fit is refused before it is asked for: an allocation that fails ends the process.
//!
//! It reads Linux's `/proc` and the limits of a control group; elsewhere nothing is known and nothing refused.

use std::any::Any;
use std::fs;
use std::panic::{self, AssertUnwindSafe};

/// Less than this is not worth asking the system.
const SMALL: u64 = 64 << 20;

/// What needs more memory than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} of memory are needed, and {} are left", gigabytes(*needed), gigabytes(*left))]
pub struct TooLarge {
    /// Bytes that are needed.
    pub needed: u64,
    /// Bytes that are left to this process.
    pub left: u64,
}

/// Refuses `count` things of `size` bytes if there is no memory for them.
pub fn check(count: u128, size: u128) -> Result<(), TooLarge> {
    let needed = u64::try_from(count.saturating_mul(size)).unwrap_or(u64::MAX);
    if needed < SMALL {
        return Ok(());
    }
    match available() {
        Some(left) if needed > left => Err(TooLarge { needed, left }),
        _ => Ok(()),
    }
}

/// As [`check`], where no error can be returned, as deep within the building of a model: [`caught`] further up gets it.
pub fn claim(count: u128, size: u128) {
    if let Err(error) = check(count, size) {
        // Not a panic: nothing is printed, and nobody but `caught` sees it.
        panic::resume_unwind(Box::new(error));
    }
}

/// Does `work`, in which memory is claimed ([`claim`]).
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, TooLarge> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload: Box<dyn Any + Send>| {
        match payload.downcast::<TooLarge>() {
            Ok(error) => *error,
            Err(other) => panic::resume_unwind(other),
        }
    })
}

/// Bytes that are left to this process, if the system says so.
pub fn available() -> Option<u64> {
    let machine = number_after(&read("/proc/meminfo"), "MemAvailable:").map(|kib| kib * 1024);
    let group = || {
        let most = read("/sys/fs/cgroup/memory.max").trim().parse::<u64>().ok()?;
        let taken = read("/sys/fs/cgroup/memory.current").trim().parse::<u64>().ok()?;
        Some(most.saturating_sub(taken))
    };
    let limit = || {
        let most = number_after(&read("/proc/self/limits"), "Max address space")?;
        let taken = number_after(&read("/proc/self/status"), "VmSize:")? * 1024;
        Some(most.saturating_sub(taken))
    };
    [machine, group(), limit()].into_iter().flatten().min()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first number after `name` in the line that begins with it; none where it says "unlimited".
fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn gigabytes(bytes: u64) -> String {
    let gigabytes = bytes as f64 / 1e9;
    if gigabytes < 1e4 { format!("{gigabytes:.1} GB") } else { format!("{gigabytes:.0e} GB") }
}

/// Returns the peak memory of this process in bytes; 0 where Linux's `/proc` does not exist.
pub fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_and_what_can_is_not() {
        check(1 << 20, 4).expect("little");
        if available().is_some() {
            assert_eq!(check(u128::MAX, 4).expect_err("too much").needed, u64::MAX);
            let error = caught(|| claim(1 << 62, 4)).expect_err("too much");
            assert!(error.to_string().contains("GB of memory are needed, and"), "{error}");
        }
        assert_eq!(caught(|| 3), Ok(3));
    }

    #[test]
    fn another_panic_goes_on() {
        let caught = panic::catch_unwind(|| caught(|| panic::resume_unwind(Box::new("another"))));
        assert_eq!(caught.expect_err("it goes on").downcast_ref::<&str>(), Some(&"another"));
    }

    #[test]
    fn numbers_are_found_in_lines() {
        let text = "Limit  Soft\nMax address space         4096000000           unlimited            bytes\nVmSize:\t  12 kB\n";
        assert_eq!(number_after(text, "Max address space"), Some(4_096_000_000));
        assert_eq!(number_after(text, "VmSize:"), Some(12));
        assert_eq!(number_after("Max address space unlimited unlimited", "Max address space"), None);
    }
}
