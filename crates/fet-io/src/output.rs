//! Checks of a command's output, before the command does any work.

use std::path::{Path, PathBuf};

use crate::input::input;

/// Name of standard output.
pub const STANDARD: &str = "-";

/// Refuses an output that is a folder, whose folder does not exist, that cannot be written, or that is one of the inputs.
pub fn check<'a>(out: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> anyhow::Result<()> {
    check_as("--out", out, inputs)
}

/// As [`check`], for an output that `argument` names.
pub fn check_as<'a>(
    argument: &str,
    out: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    if out == Path::new(STANDARD) {
        return Ok(());
    }
    let refuse = |problem: String| Err(input(format!("{argument} {}: {problem}", out.display())));
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return refuse(format!("the folder {} does not exist; create it first", folder.display()));
    }
    if let Err(problem) = check_name(out) {
        return refuse(problem);
    }
    if out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/') {
        return refuse("this is a folder; name a file".to_string());
    }
    let same = |path: &PathBuf| matches!((path.canonicalize(), out.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if let Err(error) = crate::check_writable(out) {
        return refuse(format!("this cannot be written ({error})"));
    }
    if inputs.into_iter().any(same) {
        return refuse("this would overwrite an input or a file of the run; name another file".to_string());
    }
    Ok(())
}

/// Returns true if two outputs are one file, which may not exist yet.
pub fn are_same(one: &Path, other: &Path) -> bool {
    matches!((resolved(one, LINKS), resolved(other, LINKS)), (Some(one), Some(other)) if one == other)
}

/// Maximum number of symbolic links to follow from an output.
const LINKS: usize = 40;

/// Returns the path of the file that a write to `out` would create or replace; `None` if there is no such path.
fn resolved(out: &Path, links: usize) -> Option<PathBuf> {
    if let Ok(found) = out.canonicalize() {
        return Some(found);
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match out.read_link() {
        // A link to a file that does not exist yet.
        Ok(target) => resolved(&folder.join(target), links.checked_sub(1)?),
        Err(_) => Some(folder.canonicalize().ok()?.join(out.file_name()?)),
    }
}

/// As [`check_as`], for a private file: it refuses standard output and compressed files too.
pub fn check_own<'a>(
    argument: &str,
    out: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    let refuse = |problem: &str| Err(input(format!("{argument} {}: {problem}", out.display())));
    if out == Path::new(STANDARD) {
        return refuse("is standard output, which other users may read; name a file");
    }
    if out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")) {
        return refuse("cannot be compressed; name a file without .gz");
    }
    check_as(argument, out, inputs)
}

/// Refuses a name with control characters, which a terminal would not show.
pub fn check_name(out: &Path) -> Result<(), String> {
    match out.to_string_lossy().chars().find(|c| c.is_control()) {
        Some(found) => {
            Err(format!("the name contains the control character U+{:04X}; choose another", u32::from(found)))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_file_are_the_same_before_it_exists() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("in")).expect("a folder");
        assert!(are_same(&at("a.csv"), &at("in/../a.csv")));
        assert!(!are_same(&at("a.csv"), &at("in/a.csv")));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("a.csv", at("link.csv")).expect("a link");
            std::os::unix::fs::symlink("loop.csv", at("loop.csv")).expect("a link");
            assert!(are_same(&at("link.csv"), &at("a.csv")) && !are_same(&at("link.csv"), &at("b.csv")));
            assert!(!are_same(&at("loop.csv"), &at("loop.csv")), "a link to itself leads to no file");
        }
        std::fs::write(at("a.csv"), "").expect("written");
        assert!(are_same(&at("a.csv"), &at("./a.csv")));
    }
}
