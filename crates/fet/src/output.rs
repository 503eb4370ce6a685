//! Where a command writes: refused before any work is done.

use std::path::{Path, PathBuf};

use crate::input::input;

/// Refuses an output that is a folder, lies in none that exists, or is one of the inputs.
pub(crate) fn check<'a>(out: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> anyhow::Result<()> {
    let refuse = |problem: String| Err(input(format!("--out {}: {problem}", out.display())));
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return refuse(format!("the folder {} does not exist; make it first", folder.display()));
    }
    if out.is_dir() {
        return refuse("this is a folder; name a file".to_string());
    }
    let same = |path: &PathBuf| matches!((path.canonicalize(), out.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if inputs.into_iter().any(same) {
        return refuse("this would overwrite an input; name another file".to_string());
    }
    Ok(())
}
