//! A cell: one variant with one seed, what it resolves to, and the folder that is its own.
//!
//! The folder's name holds a hash of the resolved experiment, so that a changed study never meets old results.
//! Cells are not run here; `queue` does.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::fet::{Base, Fet};
use super::plan::Plan;

/// One variant with one seed.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The variant's name.
    pub(crate) variant: String,
    /// The seed.
    pub(crate) seed: u64,
    /// What the variant changes, each as `path=value`.
    pub(crate) sets: Vec<String>,
    /// Every setting, as `fet show` gives it: what the report must repeat.
    pub(crate) resolved: Value,
    /// The study's folder.
    pub(crate) study: PathBuf,
    /// The cell's folder, inside it.
    pub(crate) folder: PathBuf,
}

impl Cell {
    /// What the cell is called in lines of progress.
    pub(crate) fn title(&self) -> String {
        format!("{}, seed {}", self.variant, self.seed)
    }
}

/// The cells of a plan, by variant and then seed. `fet` checks each; the first bad one is the error.
pub(crate) fn resolve(plan: &Plan, fet: &Fet, base: &Base<'_>, out: &Path) -> Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut study = None;
    for variant in &plan.variants {
        for &seed in &plan.seeds {
            let title = || format!("{}, seed {seed}", variant.name);
            let resolved = fet.show(base, &variant.sets, seed).with_context(title)?;
            let study = match &study {
                Some(study) => study,
                None => study.insert(out.join(study_name(&resolved)?)),
            };
            let folder = study.join("cells").join(folder_name(&variant.name, seed, &resolved));
            if let Some(twin) = cells.iter().find(|cell| cell.folder == folder) {
                let twin = &twin.variant;
                anyhow::bail!(
                    "variants must differ, but {twin:?} and {:?} are the same experiment",
                    variant.name
                );
            }
            let (variant, sets) = (variant.name.clone(), variant.sets.clone());
            cells.push(Cell { variant, seed, sets, resolved, study: study.clone(), folder });
        }
    }
    Ok(cells)
}

fn study_name(resolved: &Value) -> Result<&str> {
    let name = resolved["name"].as_str().context("the experiment has no name")?;
    let is_plain = matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    ensure!(is_plain, "name: must be a plain file name, but is {name:?}");
    Ok(name)
}

fn folder_name(variant: &str, seed: u64, resolved: &Value) -> String {
    let hash = Sha256::digest(resolved.to_string().as_bytes());
    let hex: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-s{seed}-{hex}", slug(variant))
}

/// A name as part of a file's name: lower-case letters, digits and single dashes, 60 at most.
fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-");
    slug.truncate(60);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "variant".to_string() } else { slug.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slugs_are_safe_file_names() {
        let check = |name: &str, expected: &str| assert_eq!(slug(name), expected, "{name}");
        check("FeT", "fet");
        check("FeT without mask", "fet-without-mask");
        check("A · kind=grid · k=0.5", "a-kind-grid-k-0-5");
        check("../..//etc", "etc");
        check("  --x--  ", "x");
        check("§ Ω", "variant");
        check(&"ab ".repeat(30), &"ab-".repeat(20)[..59]);
    }

    #[test]
    fn folders_follow_the_variant_the_seed_and_the_experiment() {
        let name = folder_name("FeT", 3, &json!({"a": 1}));
        // printf '{"a":1}' | sha256sum
        assert_eq!(name, "fet-s3-015abd7f5cc5");
        assert_ne!(name, folder_name("FeT", 3, &json!({"a": 2})));
    }

    #[test]
    fn a_study_is_named_by_a_plain_file_name() {
        assert_eq!(study_name(&json!({"name": "quickstart"})).expect("plain"), "quickstart");
        for bad in [json!({}), json!({"name": ""}), json!({"name": "../x"}), json!({"name": "a/b"})] {
            assert!(study_name(&bad).is_err(), "{bad}");
        }
    }
}
