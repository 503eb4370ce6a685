//! Available memory: refuses requests that cannot fit before they allocate, because a failed allocation ends
//! the process.
//!
//! The module reads Linux's `/proc` and the limits of a control group. On other systems it knows no limit and
//! refuses nothing.

use std::any::Any;
use std::fs;
use std::panic::{self, AssertUnwindSafe};

/// Requests below this number of bytes are not checked.
const SMALL: u64 = 64 << 20;

/// Error: a request needs more memory than is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} of memory are needed, and {} are available", gigabytes(*needed), gigabytes(*left))]
pub struct TooLarge {
    /// Required bytes.
    pub needed: u64,
    /// Bytes available to this process.
    pub left: u64,
}

/// Refuses `count` items of `size` bytes if the available memory cannot hold them.
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

/// Checks like [`check`], for code that cannot return an error, such as the construction of a model. An
/// enclosing [`caught`] returns the error.
pub fn claim(count: u128, size: u128) {
    if let Err(error) = check(count, size) {
        // This unwinds without a panic message; only `caught` handles the payload.
        panic::resume_unwind(Box::new(error));
    }
}

/// Runs `work` and returns the error of a failed [`claim`] in it.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, TooLarge> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload: Box<dyn Any + Send>| {
        match payload.downcast::<TooLarge>() {
            Ok(error) => *error,
            Err(other) => panic::resume_unwind(other),
        }
    })
}

/// Returns the number of bytes available to this process, if the system reports it.
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

/// Returns the first number after `name` in the line that begins with `name`; `None` for "unlimited".
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
    fn refuses_only_work_that_exceeds_memory() {
        check(1 << 20, 4).expect("little");
        if available().is_some() {
            assert_eq!(check(u128::MAX, 4).expect_err("too much").needed, u64::MAX);
            let error = caught(|| claim(1 << 62, 4)).expect_err("too much");
            assert!(error.to_string().contains("GB of memory are needed, and"), "{error}");
        }
        assert_eq!(caught(|| 3), Ok(3));
    }

    #[test]
    fn other_panics_continue() {
        let caught = panic::catch_unwind(|| caught(|| panic::resume_unwind(Box::new("another"))));
        assert_eq!(caught.expect_err("it goes on").downcast_ref::<&str>(), Some(&"another"));
    }

    #[test]
    fn finds_numbers_in_lines() {
        let text = "Limit  Soft\nMax address space         4096000000           unlimited            bytes\nVmSize:\t  12 kB\n";
        assert_eq!(number_after(text, "Max address space"), Some(4_096_000_000));
        assert_eq!(number_after(text, "VmSize:"), Some(12));
        assert_eq!(number_after("Max address space unlimited unlimited", "Max address space"), None);
    }
}
