//! What tests share: seeded changes of inputs ([`mutate`]), what no [`message`] may contain, a [`tally`] of cases, and what a
//! test does where a part that it needs is absent.
//!
//! Such a test is left out, with a line that says so; or it fails, where the environment variable `FET_REQUIRE` names the
//! part. `.ci/run` names what it has set up, so that a test which finds nothing to test there does not pass. This crate does
//! not look for the parts: a test does, and calls [`left_out`] where there is none.

pub mod folder;
pub mod message;
pub mod mutate;
pub mod tally;

/// The parts that a test may need: real data in `FET_DATA`, golden files in `FET_GOLDEN`, Debian's chromium, a Slurm
/// cluster for tests, the TOML language server taplo in `FET_TAPLO`, LibTorch, a GPU, a `fet` beside `xtask`, and the program
/// `nats-server` in `FET_NATS` or on the path.
pub const PARTS: [&str; 9] =
    ["data", "golden", "chromium", "slurm", "taplo", "libtorch", "gpu", "fet", "nats"];

/// Says that a test is left out, as there is no `part`.
///
/// # Panics
/// If `FET_REQUIRE` names the part, or something that is none.
pub fn left_out(part: &str, why: &str) {
    assert!(PARTS.contains(&part), "no test asks for {part:?}: there are {PARTS:?}");
    let required = std::env::var("FET_REQUIRE").unwrap_or_default();
    assert!(!requires(&required, part), "FET_REQUIRE={required}, and there is no {part}: {why}");
    eprintln!("left out: {why}");
}

/// Whether a list, with commas between the names, names the part.
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
