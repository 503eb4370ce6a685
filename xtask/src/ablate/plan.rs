//! The plan of a study: its variants (the grid of variants and axes) and its seeds.
//!
//! It does not know what a setting means; `fet` checks that, cell by cell.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::file::{File, Profile, VariantTable, check_seeds};

/// What is compared, in the order of the tables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// At least one.
    pub(crate) variants: Vec<Variant>,
    /// At least one; all differ.
    pub(crate) seeds: Vec<u64>,
    /// What a profile changes in the base: its name and that of the results among it.
    pub(crate) sets: Vec<String>,
    /// The profile, where one was picked.
    pub(crate) profile: Option<String>,
}

/// The base with some settings changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    /// As it stands in the tables.
    pub(crate) name: String,
    /// Each as `path=value`, in order.
    pub(crate) sets: Vec<String>,
}

/// What the command line picks of a file's study.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// In place of the file's seeds.
    pub(crate) seeds: Option<Vec<u64>>,
    /// Names of variants, before or after the axes are joined in; empty means all.
    pub(crate) only: Vec<String>,
    /// The profile to use.
    pub(crate) profile: Option<String>,
}

impl Plan {
    /// The plan of the file at `path`.
    pub(crate) fn read(path: &Path, selection: &Selection) -> Result<Self> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let file = File::read(path)?;
        Self::of(file, &stem, selection).with_context(|| path.display().to_string())
    }

    fn of(file: File, stem: &str, selection: &Selection) -> Result<Self> {
        let name = file.name.unwrap_or_else(|| stem.to_string());
        let profile = match &selection.profile {
            None => Profile::default(),
            Some(wanted) => file.profile.get(wanted).cloned().with_context(|| {
                let known: Vec<&String> = file.profile.keys().collect();
                format!("--profile: there is no profile {wanted:?}; there are {known:?}")
            })?,
        };
        let (own_seeds, mut roots, mut axes) = match file.ablation {
            Some(ablation) => (ablation.seeds, ablation.variants, ablation.axes),
            None => (vec![file.seed], Vec::new(), toml::Table::new()),
        };
        if roots.is_empty() {
            roots.push(VariantTable { name: name.clone(), set: Vec::new() });
        }
        axes.extend(profile.axes);
        let seeds = selection.seeds.clone().or(profile.seeds).unwrap_or(own_seeds);
        check_seeds("--seeds", &seeds)?;
        // The variant, and the name of the one it comes from.
        let mut grid: Vec<(Variant, String)> = Vec::new();
        for root in roots {
            let variant = Variant { name: root.name.clone(), sets: root.set };
            grid.extend(expand(variant, &axes).into_iter().map(|variant| (variant, root.name.clone())));
        }
        for (index, (variant, _)) in grid.iter().enumerate() {
            let is_new = grid[..index].iter().all(|(other, _)| other.name != variant.name);
            ensure!(is_new, "ablation.axes: variants must differ, but {:?} is there twice", variant.name);
        }
        let only = if selection.only.is_empty() { &profile.only } else { &selection.only };
        for wanted in only {
            let is_known = grid.iter().any(|(variant, root)| *wanted == variant.name || wanted == root);
            let known: Vec<&str> = grid.iter().map(|(variant, _)| variant.name.as_str()).collect();
            ensure!(is_known, "--only: there is no variant {wanted:?}; there are {known:?}");
        }
        grid.retain(|(variant, root)| only.is_empty() || only.contains(&variant.name) || only.contains(root));
        let mut sets = profile.set;
        sets.extend(selection.profile.iter().map(|profile| format!("name={name}-{profile}")));
        let variants = grid.into_iter().map(|(variant, _)| variant).collect();
        Ok(Self { variants, seeds, sets, profile: selection.profile.clone() })
    }
}

/// One variant for each combination of the axes' values; the last axis changes fastest.
fn expand(variant: Variant, axes: &toml::Table) -> Vec<Variant> {
    let mut grid = vec![variant];
    for (key, values) in axes {
        let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
        let with = |variant: &Variant, value: &toml::Value| {
            let label = key.rsplit('.').next().unwrap_or(key);
            let mut sets = variant.sets.clone();
            sets.push(format!("{key}={value}"));
            Variant { name: format!("{} · {label}={}", variant.name, shown(value)), sets }
        };
        grid = grid.iter().flat_map(|variant| values.iter().map(move |value| with(variant, value))).collect();
    }
    grid
}

/// A value as it stands in a name: text without its quotes.
fn shown(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str, selection: &Selection) -> Result<Plan> {
        Plan::of(toml::from_str(text).expect(text), "stem", selection)
    }

    const GRID: &str = "name = 'x'\n[ablation]\nseeds = [0, 1]\n\
        [[ablation.variants]]\nname = 'A'\nset = ['a=1']\n[[ablation.variants]]\nname = 'B'\n\
        [ablation.axes]\n'linker.kind' = ['nearest', 'grid']\n'x.k' = [1, 0.5]\n";

    #[test]
    fn grids_are_expanded_in_order() {
        let check = |text: &str, seeds: &[u64], expected: &[(&str, &[&str])]| {
            let plan = plan(text, &Selection::default()).expect(text);
            assert_eq!(plan.seeds, seeds, "{text}");
            let found: Vec<(&str, Vec<&str>)> = plan
                .variants
                .iter()
                .map(|variant| (variant.name.as_str(), variant.sets.iter().map(String::as_str).collect()))
                .collect();
            let expected: Vec<(&str, Vec<&str>)> =
                expected.iter().map(|(name, sets)| (*name, sets.to_vec())).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("name = 'x'", &[0], &[("x", &[])]);
        check("seed = 7", &[7], &[("stem", &[])]);
        check("name = 'x'\n[ablation]\nseeds = [2]", &[2], &[("x", &[])]);
        check(
            GRID,
            &[0, 1],
            &[
                ("A · kind=nearest · k=1", &["a=1", "linker.kind=\"nearest\"", "x.k=1"]),
                ("A · kind=nearest · k=0.5", &["a=1", "linker.kind=\"nearest\"", "x.k=0.5"]),
                ("A · kind=grid · k=1", &["a=1", "linker.kind=\"grid\"", "x.k=1"]),
                ("A · kind=grid · k=0.5", &["a=1", "linker.kind=\"grid\"", "x.k=0.5"]),
                ("B · kind=nearest · k=1", &["linker.kind=\"nearest\"", "x.k=1"]),
                ("B · kind=nearest · k=0.5", &["linker.kind=\"nearest\"", "x.k=0.5"]),
                ("B · kind=grid · k=1", &["linker.kind=\"grid\"", "x.k=1"]),
                ("B · kind=grid · k=0.5", &["linker.kind=\"grid\"", "x.k=0.5"]),
            ],
        );
    }

    #[test]
    fn selections_pick() {
        let check = |seeds: Option<&[u64]>, only: &[&str], variants: usize, seeds_left: usize| {
            let only = only.iter().map(ToString::to_string).collect();
            let selection = Selection { seeds: seeds.map(<[u64]>::to_vec), only, profile: None };
            let plan = plan(GRID, &selection).expect("a plan");
            assert_eq!((plan.variants.len(), plan.seeds.len()), (variants, seeds_left), "{selection:?}");
        };
        check(None, &[], 8, 2);
        check(Some(&[4]), &["A"], 4, 1);
        check(None, &["B · kind=grid · k=1"], 1, 2);
        check(None, &["A", "B · kind=grid · k=1"], 5, 2);
    }

    #[test]
    fn a_profile_is_a_smaller_study() {
        let text = format!(
            "{GRID}[profile.quick]\nset = ['data.rows=5']\nseeds = [4]\nonly = ['B']\naxes = {{ 'x.k' = [2] }}"
        );
        let picked = |profile: Option<&str>, only: &[&str]| {
            let only = only.iter().map(ToString::to_string).collect();
            plan(&text, &Selection { seeds: None, only, profile: profile.map(str::to_string) })
        };
        let quick = picked(Some("quick"), &[]).expect("a plan");
        let names: Vec<&str> = quick.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["B · kind=nearest · k=2", "B · kind=grid · k=2"]);
        assert_eq!(
            (quick.seeds.as_slice(), quick.sets.join(" ")),
            (&[4][..], "data.rows=5 name=x-quick".into())
        );
        assert_eq!(picked(Some("quick"), &["A"]).expect("a plan").variants.len(), 2);
        assert_eq!(picked(None, &[]).expect("a plan").variants.len(), 8);
        let message = picked(Some("quik"), &[]).expect_err("refused").to_string();
        assert!(message.contains("--profile") && message.contains("\"quick\""), "{message}");
    }

    #[test]
    fn what_cannot_be_picked_is_refused() {
        let check = |text: &str, seeds: Option<&[u64]>, only: &[&str], parts: &[&str]| {
            let only = only.iter().map(ToString::to_string).collect();
            let selection = Selection { seeds: seeds.map(<[u64]>::to_vec), only, profile: None };
            let message = plan(text, &selection).expect_err("refused").to_string();
            for part in parts {
                assert!(message.contains(part), "{message:?} lacks {part:?}");
            }
        };
        check(GRID, Some(&[1, 1]), &[], &["--seeds", "1 is there twice"]);
        check(GRID, None, &["C"], &["--only", "\"C\"", "A · kind=nearest"]);
        check("[ablation]\nseeds = [0]\n[ablation.axes]\na = [1, '1']", None, &[], &["a=1", "twice"]);
    }
}
