//! Peak memory of this process.
//!
//! The value comes from Linux's `/proc`; on other systems it is 0, which means "unknown".

/// Returns the peak memory of this process in bytes; 0 if unknown.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
