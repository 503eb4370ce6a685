//! The tables `[ablation]` and `[profile.NAME]` of an experiment file: their fields and their errors. The
//! module `tune` holds the table `[tune]`.
//!
//! The rest of the file is the experiment, which only `fet` reads. The module `grid` builds the grid.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use fet_io::Mark;
use serde::Deserialize;

use super::repetition::{check_folds, check_seeds};
use super::tune::space::Tune;

/// Parts of an experiment file that a study reads.
#[derive(Debug, Deserialize)]
pub(crate) struct StudyFile {
    /// Name of the experiment.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Seed of the experiment, used if there is no `[ablation]`.
    #[serde(default)]
    pub(crate) seed: u64,
    /// The study.
    pub(crate) ablation: Option<Ablation>,
    /// Profiles by name.
    #[serde(default)]
    pub(crate) profile: BTreeMap<String, Profile>,
    /// Search over settings.
    pub(crate) tune: Option<Tune>,
    /// Header comment of the file.
    #[serde(skip)]
    pub(crate) head: Head,
}

/// Parts of a file's header comment that a report shows, such as `# Question: ...`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Question of the study.
    pub(crate) question: Option<String>,
    /// Answer of the paper.
    pub(crate) paper: Option<String>,
    /// Data of the study.
    pub(crate) data: Option<String>,
}

/// A table `[profile.NAME]`: a faster form of the study, with fewer rows, epochs, seeds or values.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// Changes to the base, each as `path=value`. A variant's change to the same setting wins.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// Replaces the study's seeds.
    pub(crate) seeds: Option<Vec<u64>>,
    /// Replaces the study's folds.
    pub(crate) folds: Option<usize>,
    /// Names of the variants to run; empty means all.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// Replaces the study's values for these settings.
    #[serde(default)]
    pub(crate) axes: toml::Table,
}

/// The table `[ablation]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ablation {
    /// Seeds; every variant runs with each seed.
    pub(crate) seeds: Vec<u64>,
    /// Number of cross-validation folds: every variant runs on each fold of each seed's split. 0 means the split of
    /// the experiment.
    #[serde(default)]
    pub(crate) folds: usize,
    /// Variants; empty means only the base.
    #[serde(default)]
    pub(crate) variants: Vec<VariantTable>,
    /// Maps a setting to its values. Every variant runs with every combination of values.
    #[serde(default)]
    pub(crate) axes: toml::Table,
    /// Excluded combinations. Each names a `variant`, settings of the axes, or both.
    #[serde(default)]
    pub(crate) exclude: Vec<toml::Table>,
    /// Name of the variant that the other variants are compared with; `None` means the first variant.
    pub(crate) base: Option<String>,
    /// Published figures, shown next to the computed figures.
    #[serde(default)]
    pub(crate) paper: Vec<Published>,
}

/// Entry of `[[ablation.paper]]`: a published figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// Name of the variant, as in the tables.
    pub(crate) variant: String,
    /// Mean, in the metric's unit (0.955 for an accuracy of 95.5 %).
    pub(crate) value: f64,
    /// Standard deviation, if given.
    pub(crate) std: Option<f64>,
    /// Source of the figure.
    pub(crate) source: String,
}

/// Entry of `[[ablation.variants]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VariantTable {
    /// Name shown in the tables.
    pub(crate) name: String,
    /// Changes to the base, each as `path=value`.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// True if axes of the attack apply to the variant. Set it to false if the variant's method has no
    /// secondaries.
    #[serde(default = "yes")]
    pub(crate) attacked: bool,
    /// Name of the control variant: the same method without any data from other parties. The difference
    /// between the two is the contribution of the other parties.
    #[serde(alias = "twin")]
    pub(crate) control: Option<String>,
}

/// Returns true if a variant names its control variant by the setting's former name.
fn has_old_name(text: &str) -> bool {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let variants = table.get("ablation").and_then(|ablation| ablation.get("variants"));
    variants
        .and_then(toml::Value::as_array)
        .is_some_and(|all| all.iter().any(|one| one.get("twin").is_some()))
}

fn yes() -> bool {
    true
}

impl StudyFile {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fet_io::read_to_string(path).with_context(|| {
            let hint = if path.exists() { String::new() } else { fet_io::similar_experiment(path) };
            format!("cannot read {}{hint}", path.display())
        })?;
        let name = path.display().to_string();
        if has_old_name(&text) {
            fet_io::note!("warning: {name}: `twin` of a variant is now called `control`; rename it");
        }
        Self::parse(&text).map_err(|error| {
            // A message begins with the name of the setting.
            let message = error.to_string();
            let field =
                message.strip_prefix('`').and_then(|rest| rest.split_once('`')).map(|(field, _)| field);
            let shown = field.and_then(|field| fet_io::excerpt(&name, &text, field, Mark::Value));
            match shown {
                Some(shown) => anyhow::anyhow!("{name}: {message}\n{}", shown.trim_end()),
                None => error.context(name),
            }
        })
    }

    fn parse(text: &str) -> Result<Self> {
        let file: Self =
            toml::from_str(text).map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_end()))?;
        if let Some(ablation) = &file.ablation {
            ablation.check()?;
        }
        if let Some(tune) = &file.tune {
            tune.check()?;
        }
        for (name, profile) in &file.profile {
            profile.check(&format!("profile.{name}"), file.ablation.as_ref())?;
        }
        Ok(Self { head: Head::parse(text), ..file })
    }
}

impl Head {
    /// Reads the header comment of `text`: `# Word: ...`, continued on the following comment lines.
    fn parse(text: &str) -> Self {
        let mut head = Self::default();
        let mut part: Option<&mut Option<String>> = None;
        for line in text.lines().map_while(|line| line.strip_prefix('#')) {
            let line = line.trim();
            let named = line.split_once(':').filter(|(word, _)| !word.contains(' '));
            let rest = match named {
                Some((word, rest)) => {
                    part = match word {
                        "Question" => Some(&mut head.question),
                        "Paper" => Some(&mut head.paper),
                        "Data" => Some(&mut head.data),
                        _ => None,
                    };
                    rest.trim()
                }
                None => line,
            };
            if let Some(part) = &mut part {
                let text = part.get_or_insert_default();
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(rest);
            }
        }
        head
    }
}

impl Ablation {
    fn check(&self) -> Result<()> {
        check_seeds("ablation.seeds", &self.seeds)?;
        check_folds("ablation.folds", self.folds)?;
        let mut names = HashSet::new();
        for variant in &self.variants {
            let name = &variant.name;
            ensure!(!name.trim().is_empty(), "ablation.variants: `name` must not be empty, but is {name:?}");
            let is_plain = !name.chars().any(char::is_control);
            ensure!(is_plain, "ablation.variants: `name` must be one line of plain text, but is {name:?}");
            ensure!(names.insert(name), "ablation.variants: names must differ, but {name:?} appears twice");
            check_sets(&format!("ablation.variants, {name:?}"), &variant.set)?;
        }
        check_axes("ablation.axes", &self.axes)?;
        for rule in &self.exclude {
            ensure!(!rule.is_empty(), "ablation.exclude: a rule must name `variant` or an axis, but is {{}}");
            for key in rule.keys() {
                let is_known = key == "variant" || self.axes.contains_key(key);
                let axes: Vec<&String> = self.axes.keys().collect();
                let rule = "a rule must name `variant` or an axis";
                ensure!(is_known, "ablation.exclude: {rule}, but {key:?} is neither; the axes are {axes:?}");
            }
        }
        for published in &self.paper {
            let place = format!("ablation.paper, {:?}", published.variant);
            ensure!(published.value.is_finite(), "{place}: `value` must be a number");
            ensure!(
                !published.source.trim().is_empty(),
                "{place}: `source` must name the publication of the figure"
            );
            let is_spread = published.std.is_none_or(|std| std.is_finite() && std >= 0.0);
            ensure!(is_spread, "{place}: `std` must be 0 or more, but is {:?}", published.std);
        }
        Ok(())
    }
}

impl Profile {
    fn check(&self, place: &str, study: Option<&Ablation>) -> Result<()> {
        check_sets(place, &self.set)?;
        if let Some(seeds) = &self.seeds {
            check_seeds(&format!("{place}.seeds"), seeds)?;
        }
        check_folds(&format!("{place}.folds"), self.folds.unwrap_or_default())?;
        check_axes(&format!("{place}.axes"), &self.axes)?;
        for key in self.axes.keys() {
            let is_axis = study.is_some_and(|study| study.axes.contains_key(key));
            ensure!(is_axis, "{place}.axes: must name axes of the study, but {key:?} is not one of them");
        }
        Ok(())
    }
}

fn check_sets(place: &str, sets: &[String]) -> Result<()> {
    for set in sets {
        let is_assignment = set.split_once('=').is_some_and(|(path, _)| !path.trim().is_empty());
        ensure!(is_assignment, "{place}: `set` must contain path=value, but contains {set:?}");
    }
    Ok(())
}

fn check_axes(place: &str, axes: &toml::Table) -> Result<()> {
    for (key, values) in axes {
        match values.as_array().map(Vec::as_slice) {
            Some([]) => bail!("{place}, {key:?}: must contain at least one value, but is []"),
            Some(_) => {}
            None => bail!("{place}, {key:?}: must be an array of values, but is {values}"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_former_name_of_a_control_variant() {
        let text = |name: &str| {
            format!("[ablation]\nseeds = [0]\nvariants = [{{ name = 'A', {name} = 'B' }}, {{ name = 'B' }}]")
        };
        for (name, is_old) in [("control", false), ("twin", true)] {
            let file = StudyFile::parse(&text(name)).expect("sound");
            let variants = file.ablation.expect("an ablation").variants;
            assert_eq!(variants[0].control.as_deref(), Some("B"));
            assert_eq!(has_old_name(&text(name)), is_old);
        }
    }

    #[test]
    fn reads_valid_files() {
        let check = |text: &str, seeds: &[u64], variants: usize, axes: usize| {
            let ablation = StudyFile::parse(text).expect(text).ablation.expect(text);
            assert_eq!(ablation.seeds, seeds, "{text}");
            assert_eq!((ablation.variants.len(), ablation.axes.len()), (variants, axes), "{text}");
        };
        check("[ablation]\nseeds = [3]", &[3], 0, 0);
        check("name = 'x'\n[data]\nkind = 1\n[ablation]\nseeds = [0, 1]", &[0, 1], 0, 0);
        check("[ablation]\nseeds = [0]\n[[ablation.variants]]\nname = 'A'\nset = ['a.b=1']", &[0], 1, 0);
        check("[ablation]\nseeds = [0]\n[ablation.axes]\n'a.b' = [1]\nc = ['x', 'y']", &[0], 0, 2);
        assert!(StudyFile::parse("name = 'x'\nseed = 4").expect("good").ablation.is_none());
    }

    #[test]
    fn reads_the_header_of_a_study() {
        let text = "# Question: what is K\n#           worth?\n# Command:  cargo: x\n#  y\n# Paper: much\n\n# Data: z\n";
        let head = Head::parse(text);
        assert_eq!(head.question.as_deref(), Some("what is K worth?"));
        assert_eq!((head.paper.as_deref(), head.data), (Some("much"), None));
        assert_eq!(Head::parse("name = 'x'\n# Question: late"), Head::default());
    }

    #[test]
    fn refuses_invalid_files() {
        let check = |ablation: &str, parts: &[&str]| {
            let text = format!("name = 'x'\n[ablation]\n{ablation}");
            let message = format!("{:#}", StudyFile::parse(&text).expect_err(&text));
            for part in parts {
                assert!(message.contains(part), "{message:?} lacks {part:?}");
            }
        };
        let variant = "seeds = [0]\n[[ablation.variants]]\nname =";
        check("", &["missing field `seeds`"]);
        check("seeds = []", &["ablation.seeds", "at least one seed", "[]"]);
        check("seeds = [0, 1, 0]", &["ablation.seeds", "must differ", "0 appears twice"]);
        check("seeds = [-1]", &["seeds = [-1]", "line 3"]);
        check("seeds = [0]\nfolds = 1", &["ablation.folds", "at least 2", "1"]);
        check("seeds = 1", &["seeds = 1", "sequence"]);
        check("seeds = [0]\nsedes = [1]", &["unknown field `sedes`", "`axes`"]);
        check(&format!("{variant} 'A'\nsets = []"), &["unknown field `sets`", "`set`"]);
        check(&format!("{variant} 'A'\n[[ablation.variants]]\nname = 'A'"), &["must differ", "\"A\""]);
        check(&format!("{variant} ' '"), &["ablation.variants", "must not be empty", "\" \""]);
        check(&format!("{variant} \"A\\n\""), &["ablation.variants", "one line", "\"A\\n\""]);
        check(&format!("{variant} 'A'\nset = ['a.b']"), &["\"A\"", "path=value", "\"a.b\""]);
        check(
            "seeds = [0]\n[ablation.axes]\n'a.b' = []",
            &["ablation.axes", "\"a.b\"", "at least one value"],
        );
        check("seeds = [0]\n[ablation.axes]\na = 5", &["ablation.axes", "\"a\"", "array", "5"]);
        check("seeds = [0", &["line 3"]);
        let axes = "seeds = [0]\naxes = { k = [1] }\n";
        check(&format!("{axes}exclude = [{{}}]"), &["ablation.exclude", "{}"]);
        check(&format!("{axes}exclude = [{{ j = 1 }}]"), &["ablation.exclude", "\"j\"", "[\"k\"]"]);
        let paper = "[[ablation.paper]]\nvariant = 'A'\nvalue =";
        check(&format!("seeds = [0]\n{paper} nan\nsource = 'p'"), &["ablation.paper, \"A\"", "`value`"]);
        check(&format!("seeds = [0]\n{paper} 1\nsource = ''"), &["ablation.paper, \"A\"", "`source`"]);
        check(&format!("seeds = [0]\n{paper} 1\nsource = 'p'\nstd = -1"), &["`std`", "-1"]);
    }
}
