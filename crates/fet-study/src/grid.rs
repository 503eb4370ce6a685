//! The grid of a study: its variants (every variant with every combination of the axes, except exclusions),
//! its seeds, and the base of each variant.
//!
//! The grid does not interpret settings; `fet` checks the settings of each cell.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::file::{Head, Profile, Published, StudyFile, VariantTable};
use super::repetition::{Repetition, check_folds, check_seeds};

/// The variants and seeds of a study, in the order of the tables.
#[derive(Debug, PartialEq)]
pub(crate) struct StudyGrid {
    /// Name of the study, which is the name of the experiment.
    pub(crate) name: String,
    /// Variants, at least one.
    pub(crate) variants: Vec<Variant>,
    /// Seeds, at least one and all different.
    pub(crate) seeds: Vec<u64>,
    /// Number of cross-validation folds; 0 means the split of the experiment.
    pub(crate) folds: usize,
    /// Changes of the profile to the base, including the name of the results.
    pub(crate) sets: Vec<String>,
    /// The selected profile, if any.
    pub(crate) profile: Option<String>,
    /// Header comment of the file, with the question.
    pub(crate) head: Head,
    /// Published figures.
    pub(crate) paper: Vec<Published>,
    /// Name of the base in the file.
    base: Option<String>,
}

/// The base experiment with some settings changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    /// Name shown in the tables.
    pub(crate) name: String,
    /// Changes to the base, each as `path=value`, in order.
    pub(crate) sets: Vec<String>,
    /// Name without the values of the axes.
    pub(crate) root: String,
    /// Setting and value for each axis.
    pub(crate) point: Vec<(String, String)>,
    /// Name of the control variant in the file: the same variant without data from other parties.
    pub(crate) control: Option<String>,
}

/// Selection from a file's study, given on the command line.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Replaces the file's seeds.
    pub(crate) seeds: Option<Vec<u64>>,
    /// Replaces the file's folds.
    pub(crate) folds: Option<usize>,
    /// Names of variants, with or without the values of the axes; empty means all.
    pub(crate) only: Vec<String>,
    /// The profile to use.
    pub(crate) profile: Option<String>,
}

impl StudyGrid {
    /// Reads the file at `path` and builds its grid.
    pub(crate) fn read(path: &Path, scope: &Scope) -> Result<Self> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let file = StudyFile::read(path)?;
        Self::from_file(file, &stem, scope).with_context(|| path.display().to_string())
    }

    /// Builds the grid of a file's text.
    #[cfg(test)]
    pub(crate) fn parse(text: &str, scope: &Scope) -> Result<Self> {
        Self::from_file(toml::from_str(text)?, "stem", scope)
    }

    fn from_file(file: StudyFile, stem: &str, scope: &Scope) -> Result<Self> {
        let name = file.name.unwrap_or_else(|| stem.to_string());
        let profile = match &scope.profile {
            None => Profile::default(),
            Some(wanted) => file.profile.get(wanted).cloned().with_context(|| {
                let known: Vec<&String> = file.profile.keys().collect();
                format!("--profile: unknown profile {wanted:?}; the profiles are {known:?}")
            })?,
        };
        let mut study = file.ablation.unwrap_or_default();
        let own_seeds = if study.seeds.is_empty() { vec![file.seed] } else { study.seeds };
        if study.variants.is_empty() {
            study.variants.push(VariantTable {
                name: name.clone(),
                set: Vec::new(),
                attacked: true,
                control: None,
            });
        }
        let seeds = scope.seeds.clone().or(profile.seeds).unwrap_or(own_seeds);
        check_seeds("--seeds", &seeds)?;
        let folds = scope.folds.or(profile.folds).unwrap_or(study.folds);
        check_folds("--folds", folds)?;
        // The checks use the whole study: a profile may lack variants that the rules and the base name.
        let whole = combinations(&study.variants, &study.axes);
        for rule in &study.exclude {
            let hits = whole.iter().any(|variant| is_excluded(variant, rule));
            ensure!(hits, "ablation.exclude: no variant matches the rule {{ {} }}", inline(rule));
        }
        if let Some(variant) = study.variants.iter().find(|variant| !variant.attacked) {
            ensure!(
                study.axes.keys().any(|axis| is_attack(axis)),
                "ablation.variants, {:?}: `attacked = false` needs an axis over a setting of the attack, and the axes are {:?}",
                variant.name,
                study.axes.keys().collect::<Vec<_>>()
            );
        }
        let known: Vec<&str> = whole.iter().map(|variant| variant.name.as_str()).collect();
        let is_variant =
            |wanted: &str| whole.iter().any(|variant| variant.name == wanted || variant.root == wanted);
        if let Some(base) = &study.base {
            ensure!(is_variant(base), "ablation.base: unknown variant {base:?}; the variants are {known:?}");
        }
        for variant in &study.variants {
            let Some(control) = &variant.control else { continue };
            let name = &variant.name;
            ensure!(
                is_variant(control),
                "ablation.variants, {name:?}: `control`: unknown variant {control:?}; the variants are {known:?}"
            );
            ensure!(
                control != name,
                "ablation.variants, {name:?}: `control` must be another variant, not itself"
            );
        }
        for published in &study.paper {
            let wanted = &published.variant;
            let is_one = whole.iter().any(|variant| variant.name == *wanted);
            ensure!(is_one, "ablation.paper: unknown variant {wanted:?}; the variants are {known:?}");
        }
        let mut axes = study.axes.clone();
        axes.extend(profile.axes);
        let mut variants = combinations(&study.variants, &axes);
        variants.retain(|variant| !study.exclude.iter().any(|rule| is_excluded(variant, rule)));
        ensure!(!variants.is_empty(), "ablation.exclude: excludes all variants; at least one must remain");
        for (index, variant) in variants.iter().enumerate() {
            let is_new = variants[..index].iter().all(|other| other.name != variant.name);
            ensure!(is_new, "ablation.axes: variants must differ, but {:?} appears twice", variant.name);
        }
        let only = if scope.only.is_empty() { &profile.only } else { &scope.only };
        for wanted in only {
            let is_known = variants.iter().any(|variant| *wanted == variant.name || *wanted == variant.root);
            let known: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
            ensure!(is_known, "--only: unknown variant {wanted:?}; the variants are {known:?}");
        }
        variants.retain(|variant| {
            only.is_empty() || only.contains(&variant.name) || only.contains(&variant.root)
        });
        let mut sets = profile.set;
        sets.extend(scope.profile.iter().map(|profile| format!("name={name}-{profile}")));
        Ok(Self {
            name,
            variants,
            seeds,
            folds,
            sets,
            profile: scope.profile.clone(),
            head: file.head,
            // Published figures describe the whole study and cannot be compared with those of a profile.
            paper: if scope.profile.is_some() { Vec::new() } else { study.paper },
            base: study.base,
        })
    }

    /// Returns the repetitions of each variant: every fold of every seed.
    pub(crate) fn repetitions(&self) -> Vec<Repetition> {
        let each = |&seed: &u64| -> Vec<Repetition> {
            if self.folds == 0 {
                return vec![Repetition { seed, fold: None }];
            }
            (0..self.folds).map(|fold| Repetition { seed, fold: Some(fold) }).collect()
        };
        self.seeds.iter().flat_map(each).collect()
    }

    /// Returns the name of the repetitions.
    pub(crate) fn unit(&self) -> &'static str {
        if self.folds == 0 { "seeds" } else { "folds" }
    }

    /// Builds a grid from `variants` that are not in any file.
    pub(crate) fn of_variants(name: &str, variants: Vec<Variant>, seeds: Vec<u64>, folds: usize) -> Self {
        Self {
            name: name.to_string(),
            variants,
            seeds,
            folds,
            sets: Vec::new(),
            profile: None,
            head: Head::default(),
            paper: Vec::new(),
            base: None,
        }
    }

    /// Returns the index of the base: the variant that the file names, or else the first variant. Returns
    /// `None` if this selection does not contain the base.
    pub(crate) fn base(&self) -> Option<usize> {
        let Some(base) = &self.base else { return Some(0) };
        self.variants.iter().position(|variant| variant.name == *base || variant.root == *base)
    }

    /// Returns the index of the variant that variant `index` is compared with.
    ///
    /// This is the base at the same values of the axes that both have. The base itself, at other values, is
    /// compared with its first combination of values. Returns `None` for that combination, and if there is no
    /// base at the same values.
    pub(crate) fn base_of(&self, index: usize) -> Option<usize> {
        let own = &self.variants[index];
        if let Some(base) = self.variants.iter().position(|variant| Some(&variant.name) == self.base.as_ref())
            && (!self.variants[base].point.is_empty() || own.point.is_empty())
        {
            return (base != index).then_some(base);
        }
        let root = self.base.as_ref().unwrap_or(&self.variants.first()?.root);
        let base = self
            .variants
            .iter()
            .position(|variant| variant.root == *root && (own.root == *root || variant.agrees(own)));
        base.filter(|base| *base != index)
    }
}

impl StudyGrid {
    /// Returns the index of the control variant of variant `index`, at the same values of the axes that both
    /// have.
    pub(crate) fn control_of(&self, index: usize) -> Option<usize> {
        let own = &self.variants[index];
        let control = own.control.as_ref()?;
        let named = |other: &Variant| other.name == *control || (other.root == *control && other.agrees(own));
        self.variants.iter().position(named).filter(|control| *control != index)
    }
}

impl StudyGrid {
    /// Returns true if the comparison of variant `index` with its base is a question of the study. A control
    /// variant is only a reference for another variant. If a variant's control variant is its base, the
    /// contribution of the other parties already answers the question.
    pub(crate) fn asks_about(&self, index: usize) -> bool {
        let is_control = (0..self.variants.len()).any(|other| self.control_of(other) == Some(index));
        let control = self.control_of(index);
        !is_control && (control.is_none() || control != self.base_of(index))
    }
}

impl Variant {
    /// Creates a variant without axes.
    pub(crate) fn new(name: String, sets: Vec<String>) -> Self {
        Self { root: name.clone(), name, sets, point: Vec::new(), control: None }
    }

    /// Returns true if both variants have equal values on the axes that both have. Axes of the attack do not
    /// apply to every variant.
    fn agrees(&self, other: &Self) -> bool {
        let differs = |(axis, value): &(String, String)| {
            other.point.iter().any(|(name, other)| name == axis && other != value)
        };
        !self.point.iter().any(differs)
    }

    /// Returns the name without the axes of the attack.
    pub(crate) fn run(&self) -> String {
        self.named(|axis| !is_attack(axis))
    }

    /// Returns the name with the values of those axes for which `has` is true.
    pub(crate) fn named(&self, has: impl Fn(&str) -> bool) -> String {
        let point = self.point.iter().filter(|(axis, _)| has(axis));
        point.fold(self.root.clone(), |name, (axis, value)| format!("{name} · {}={value}", label(axis)))
    }
}

/// Returns true if the setting belongs to the attack. Such a setting does not change the attacked run.
pub(crate) fn is_attack(setting: &str) -> bool {
    setting.split('.').next() == Some("attack")
}

/// Returns every variant with every combination of the axes' values. Axes of the attack are skipped for
/// variants that are not attacked. The last axis changes fastest.
fn combinations(roots: &[VariantTable], axes: &toml::Table) -> Vec<Variant> {
    let variant = |root: &VariantTable| {
        let (name, sets) = (root.name.clone(), root.set.clone());
        let own = axes.iter().filter(|(axis, _)| root.attacked || !is_attack(axis));
        let control = root.control.clone();
        expand(Variant { root: name.clone(), name, sets, point: Vec::new(), control }, own)
    };
    roots.iter().flat_map(variant).collect()
}

fn expand<'a>(variant: Variant, axes: impl Iterator<Item = (&'a String, &'a toml::Value)>) -> Vec<Variant> {
    let mut all = vec![variant];
    for (key, values) in axes {
        let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
        let with = |variant: &Variant, value: &toml::Value| {
            let (label, mut next) = (label(key), variant.clone());
            next.name = format!("{} · {label}={}", variant.name, format_setting(value));
            next.sets.push(format!("{key}={value}"));
            next.point.push((key.clone(), format_setting(value)));
            next
        };
        all = all.iter().flat_map(|variant| values.iter().map(move |value| with(variant, value))).collect();
    }
    all
}

/// Returns true if every condition of the rule holds. A condition with several values holds if any of these
/// values matches.
fn is_excluded(variant: &Variant, rule: &toml::Table) -> bool {
    rule.iter().all(|(key, wanted)| {
        let own = if key == "variant" {
            &variant.root
        } else {
            match variant.point.iter().find(|(axis, _)| axis == key) {
                Some((_, value)) => value,
                None => return false,
            }
        };
        match wanted.as_array() {
            Some(values) => values.iter().any(|value| format_setting(value) == *own),
            None => format_setting(wanted) == *own,
        }
    })
}

/// Returns the last segment of a setting's path.
pub(crate) fn label(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Formats a value for a name, without quotes around text.
fn format_setting(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

fn inline(rule: &toml::Table) -> String {
    rule.iter().map(|(key, value)| format!("{key:?} = {value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "grid/tests.rs"]
mod tests;
