//! Suggestions for unknown names, and the path of an experiment that is given by its name alone.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns "; did you mean ...?" for the candidate most similar to `given`, or an empty string.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| format!("; did you mean \"{name}\"?"))
        .unwrap_or_default()
}

/// Folder of the experiments within a clone.
const FOLDER: &str = "experiments";

/// Resolves the file of an experiment. A bare name such as `hdb` means `hdb.toml` here or in the folder `experiments`. Returns
/// `given` if it exists or if no file is found.
pub fn experiment(given: &Path) -> PathBuf {
    let bare = given.components().count() == 1 && !given.as_os_str().is_empty();
    if given.symlink_metadata().is_ok() || !bare {
        return given.to_path_buf();
    }
    let mut name = given.as_os_str().to_os_string();
    if given.extension() != Some(OsStr::new("toml")) {
        name.push(".toml");
    }
    let candidates = [PathBuf::from(&name), Path::new(FOLDER).join(&name)];
    candidates.into_iter().find(|path| path.is_file()).unwrap_or_else(|| given.to_path_buf())
}

/// Returns "; did you mean ...?" for a missing file: the experiment with the most similar name in its folder or in `experiments`.
pub fn similar_experiment(missing: &Path) -> String {
    let beside = missing.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut known: Vec<String> = [beside, Path::new(FOLDER)]
        .into_iter()
        .flat_map(fs::read_dir)
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("toml")))
        .filter_map(|path| stem(&path))
        .collect();
    known.sort();
    did_you_mean(&stem(missing).unwrap_or_default(), known.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_nearest_name() {
        assert_eq!(did_you_mean("neares", ["exact", "nearest"]), "; did you mean \"nearest\"?");
        assert_eq!(did_you_mean("qqq", ["exact", "nearest"]), "");
    }

    #[test]
    fn accepts_existing_names_and_suggests_the_nearest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("house.toml");
        fs::write(&path, "").expect("written");
        assert_eq!(experiment(&path), path);
        let missing = folder.path().join("hose.toml");
        assert_eq!(experiment(&missing), missing);
        assert_eq!(similar_experiment(&missing), "; did you mean \"house\"?");
        assert_eq!(similar_experiment(&folder.path().join("zzz")), "");
    }
}
