//! Files that are there whole or not at all.

use std::io::Write;
use std::path::Path;

/// Writes `bytes` to `path` by way of a temporary file beside it and a rename.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = std::fs::File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    std::fs::rename(&part, path)
}

/// The most memory this process has held, in bytes; 0 where the system does not say.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
