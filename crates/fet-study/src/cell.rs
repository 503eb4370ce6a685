//! Cells: one variant with one seed and fold, its identity and its folder.
//!
//! The folder's name ends with an address: a hash of the settings, the seed, the data and the version of the
//! program's results. If a study changes, its old results are not reused. If only the name of a variant
//! changes, the variant keeps its results. The version of a program other than `fet` is a part of its identity. An `engine` runs
//! the cells.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use fet_eval::records::{RunIdentity, ShowAnswer};
use serde_json::Value;

use super::fet::{Base, Fet, Variation};
use super::grid::StudyGrid;
use super::owner;
use super::repetition::Repetition;

/// One variant with one seed and fold.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The variant's index in the grid.
    pub(crate) index: usize,
    /// The variant's name.
    pub(crate) variant: String,
    /// Its seed and fold.
    pub(crate) repetition: Repetition,
    /// The changes of the variant and the fold, each as `path=value`.
    pub(crate) sets: Vec<String>,
    /// Its identity, from `fet show`; the report must repeat it.
    pub(crate) identity: RunIdentity,
    /// The study's folder.
    pub(crate) study: PathBuf,
    /// The cell's folder, inside it.
    pub(crate) folder: PathBuf,
}

impl Cell {
    /// The cell's name in progress lines.
    pub(crate) fn title(&self) -> String {
        format!("{}, seed {}", self.variant, self.repetition)
    }

    /// Returns the name of the program that runs the cell.
    fn program(&self) -> &str {
        owner::name(self.identity.program.as_ref())
    }

    /// Returns the settings of this cell that differ from the study's base.
    pub(crate) fn variation(&self) -> Variation<'_> {
        let is_of_fet = self.identity.program.is_none();
        Variation { sets: &self.sets, seed: self.repetition.seed, is_of_fet }
    }
}

/// Returns the cells of a grid, by variant, seed and fold. `fet` checks each cell; the first cell that `fet`
/// refuses gives the error.
pub(crate) fn resolve(grid: &StudyGrid, fet: &Fet, base: &Base<'_>, out: &Path) -> Result<Vec<Cell>> {
    let sets = |index: usize, repetition: Repetition| {
        let mut sets = grid.variants[index].sets.clone();
        if let Some(fold) = repetition.fold {
            sets.extend([format!("split.folds={}", grid.folds), format!("split.fold={fold}")]);
        }
        sets
    };
    let repetitions = grid.repetitions();
    let all: Vec<(usize, Repetition, Vec<String>)> = (0..grid.variants.len())
        .flat_map(|index| repetitions.iter().map(move |&repetition| (index, repetition)))
        .map(|(index, repetition)| (index, repetition, sets(index, repetition)))
        .collect();
    let variations: Vec<Variation<'_>> = all
        .iter()
        .map(|(_, repetition, sets)| Variation { sets, seed: repetition.seed, is_of_fet: true })
        .collect();
    let shown = fet.show(base, &variations)?;
    let mut cells: Vec<Cell> = Vec::new();
    let mut folders: Option<(PathBuf, HashMap<String, PathBuf>)> = None;
    let mut addresses: HashMap<String, usize> = HashMap::new();
    for ((index, repetition, sets), shown) in all.into_iter().zip(shown) {
        let variant = &grid.variants[index];
        let identity = match shown {
            ShowAnswer::Identity(identity) => identity,
            ShowAnswer::Refused(error) => bail!("{}, seed {repetition}: {error}", variant.name),
        };
        let (study, known) = match &mut folders {
            Some(folders) => folders,
            None => {
                let study = out.join(match &identity.program {
                    None => study_name(&identity.experiment)?,
                    Some(_) => plain_name(base.name().unwrap_or(&grid.name))?,
                });
                let known = by_address(&study);
                folders.insert((study, known))
            }
        };
        let address = address(&identity)?;
        if let Some(&control) = addresses.get(&address) {
            ensure!(
                control != index,
                "{:?}: two seeds or folds are the same experiment; `experiment` in the answer of `show --batch` must contain \
                 the seed and all settings",
                variant.name
            );
            let control = &grid.variants[control].name;
            bail!("variants must differ, but {control:?} and {:?} are the same experiment", variant.name);
        }
        let folder = known.get(&address).cloned().unwrap_or_else(|| {
            let fold = repetition.fold.map_or_else(String::new, |fold| format!("-f{fold}"));
            study.join("cells").join(format!("{}-s{}{fold}-{address}", slug(&variant.name), repetition.seed))
        });
        addresses.insert(address, index);
        let name = variant.name.clone();
        cells.push(Cell { index, variant: name, repetition, sets, identity, study: study.clone(), folder });
    }
    if let Some(first) = cells.first() {
        let own = first.program();
        if let Some(other) = cells.iter().find(|cell| cell.program() != own) {
            bail!(
                "{}: the program calls itself `{}`, and `{own}` in the answer for {}; a study has one program",
                other.title(),
                other.program(),
                first.title()
            );
        }
        owner::check(&first.study, first.identity.program.as_ref())?;
    }
    Ok(cells)
}

/// Returns the address of a cell: the first 16 hexadecimal digits of the SHA-256 of its identity, as JSON.
fn address(identity: &RunIdentity) -> Result<String> {
    let text = serde_json::to_string(identity).context("an identity is plain data")?;
    Ok(fet_io::hex(&fet_io::sha256(text.as_bytes())[..8]))
}

/// Maps the address at the end of each cell folder's name to the folder.
fn by_address(study: &Path) -> HashMap<String, PathBuf> {
    let entries = std::fs::read_dir(study.join("cells")).into_iter().flatten().flatten();
    let address = |path: PathBuf| {
        let address = path.file_name()?.to_str()?.rsplit('-').next()?.to_string();
        Some((address, path))
    };
    entries.filter_map(|entry| address(entry.path())).collect()
}

fn study_name(resolved: &Value) -> Result<&str> {
    plain_name(resolved["name"].as_str().context("the experiment lacks `name`")?)
}

fn plain_name(name: &str) -> Result<&str> {
    let is_plain = matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    ensure!(is_plain, "name: must be a plain file name, but is {name:?}");
    Ok(name)
}

/// Converts a name to a part of a file name: lower-case letters, digits and single dashes, at most 60
/// characters.
pub(crate) fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-");
    slug.truncate(60);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "variant".to_string() } else { slug.to_string() }
}

/// Creates the folder of a study's cells, and records the program that owns it.
pub(crate) fn make_folder(cell: &Cell) -> Result<()> {
    let refused = || format!("--out: cannot create the folder {}", cell.study.display());
    std::fs::create_dir_all(&cell.study).with_context(refused)?;
    owner::record(&cell.study, cell.identity.program.as_ref())?;
    std::fs::create_dir_all(cell.study.join("cells")).with_context(refused)
}

#[cfg(test)]
mod tests {
    use fet_eval::records::ProgramIdentity;
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
    fn address_depends_on_the_identity_of_a_cell() {
        let of = |experiment: Value, data: &str, results: u32| {
            address(&RunIdentity { program: None, experiment, data: data.into(), results })
                .expect("plain data")
        };
        let one = of(json!({"a": 1}), "d", 3);
        // printf '{"experiment":{"a":1},"data":"d","results":3}' | sha256sum
        assert_eq!(one, "3ced30bd65b221d4");
        let others = [(json!({"a": 2}), "d", 3), (json!({"a": 1}), "e", 3), (json!({"a": 1}), "d", 4)];
        for (experiment, data, results) in others {
            assert_ne!(one, of(experiment, data, results));
        }
        let of_program = |name: &str, version: &str| {
            let program = Some(ProgramIdentity { name: name.into(), version: version.into() });
            let data = "d".into();
            address(&RunIdentity { program, experiment: json!({"a": 1}), data, results: 0 })
                .expect("plain data")
        };
        // printf '{"program":{"name":"p","version":"1"},"experiment":{"a":1},"data":"d","results":0}' | sha256sum
        assert_eq!(of_program("p", "1"), "c335da9f48a207ea");
        assert_ne!(of_program("p", "1"), of_program("p", "2"));
        assert_ne!(of_program("p", "1"), of_program("q", "1"));
    }

    #[test]
    fn requires_a_plain_file_name_as_the_name() {
        assert_eq!(study_name(&json!({"name": "quickstart"})).expect("plain"), "quickstart");
        for bad in [json!({}), json!({"name": ""}), json!({"name": "../x"}), json!({"name": "a/b"})] {
            assert!(study_name(&bad).is_err(), "{bad}");
        }
    }
}
