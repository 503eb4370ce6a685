//! Skips tests whose requirements are absent.
//!
//! A skipped test prints a line. If the environment variable `FET_REQUIRE` names the requirement,
//! the test fails instead. `.ci/run` sets `FET_REQUIRE` to everything that it has set up, so that a test
//! without its requirement cannot pass by accident. This crate does not search for requirements: a test does,
//! and calls [`left_out`] if one is absent.

/// Requirements of tests: real data in `FET_DATA`, golden files in `FET_GOLDEN`, Debian's chromium, a Slurm
/// cluster for tests, the TOML language server taplo in `FET_TAPLO`, the feature `libtorch`, the
/// features `cuda` and `wgpu` with a device, a GPU for LibTorch with CUDA, a `fet` in the folder of `xtask`, the program `nats-server` in
/// `FET_NATS` or on the path, and the program `prometheus`, next to `promtool`, in `FET_PROMETHEUS`.
pub const PARTS: [&str; 12] = [
    "data",
    "golden",
    "chromium",
    "slurm",
    "taplo",
    "libtorch",
    "cuda",
    "wgpu",
    "gpu",
    "fet",
    "nats",
    "prometheus",
];

/// Prints that a test is skipped because `part` is absent.
///
/// # Panics
/// Panics if `FET_REQUIRE` names the part, or contains an unknown name.
pub fn left_out(part: &str, why: &str) {
    assert!(PARTS.contains(&part), "unknown part {part:?}; known parts: {PARTS:?}");
    let required = std::env::var("FET_REQUIRE").unwrap_or_default();
    assert!(!requires(&required, part), "FET_REQUIRE={required}, but {part} is absent: {why}");
    eprintln!("left out: {why}");
}

/// Returns true if a comma-separated list contains the part.
fn requires(list: &str, part: &str) -> bool {
    let names = || list.split(',').map(str::trim).filter(|name| !name.is_empty());
    for name in names() {
        assert!(PARTS.contains(&name), "FET_REQUIRE may name {PARTS:?}, not {name:?}");
    }
    names().any(|name| name == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_required_where_it_is_named() {
        for (list, part, expected) in [
            ("", "data", false),
            ("golden", "data", false),
            ("golden, data", "data", true),
            ("golden,data,", "golden", true),
        ] {
            assert_eq!(requires(list, part), expected, "{part} in {list:?}");
        }
    }

    #[test]
    #[should_panic(expected = "not \"dat\"")]
    fn a_name_that_is_none_is_an_error() {
        requires("golden,dat", "golden");
    }
}
