//! The table `[ablation]` of an experiment file: variants, axes and seeds.
//!
//! What the experiment itself says is `fet`'s to check.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::shown;
use crate::InputError;

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ablation {
    /// The experiment's name: the folder of the results.
    pub(crate) name: String,
    pub(crate) seeds: Vec<u64>,
    pub(crate) variants: Vec<Variant>,
}

/// One row of the table: the experiment with some settings changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) name: String,
    /// Assignments `path=value`, as after `--set`.
    #[serde(default)]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    seeds: Option<Vec<u64>>,
    variants: Vec<Variant>,
    /// A setting's path and the values it takes; the grid of all axes is run for every variant.
    axes: BTreeMap<String, Vec<toml::Value>>,
}

impl Ablation {
    pub(crate) fn read(path: &Path) -> Result<Self, InputError> {
        let refuse = |message: String| InputError(format!("{}: {message}", shown(path)));
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        Self::parse(&text).map_err(refuse)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let name = table.get("name").and_then(toml::Value::as_str);
        let name = name.ok_or("`name` is missing; it names the folder of the results")?.to_string();
        if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(format!("`name` must be a plain file name; it is \"{name}\""));
        }
        let own_seed = table.get("seed").and_then(toml::Value::as_integer).and_then(|seed| u64::try_from(seed).ok());
        let section: Section = match table.get("ablation") {
            Some(section) => section.clone().try_into().map_err(|error| format!("`ablation`: {error}"))?,
            None => Section::default(),
        };
        let mut variants = section.variants;
        if variants.is_empty() {
            variants.push(Variant { name: name.clone(), set: Vec::new() });
        }
        for (path, values) in &section.axes {
            if values.is_empty() {
                return Err(format!("`ablation.axes.\"{path}\"` must have at least one value; it is []"));
            }
            variants = variants.iter().flat_map(|v| values.iter().map(move |value| v.with(path, value))).collect();
        }
        let seeds = section.seeds.unwrap_or_else(|| vec![own_seed.unwrap_or(0)]);
        let ablation = Self { name, seeds, variants };
        ablation.check()?;
        Ok(ablation)
    }

    /// Keeps the variants named `only` and takes `seeds`, where they are given.
    pub(crate) fn choose(&mut self, only: &[String], seeds: &[u64]) -> Result<(), InputError> {
        let names: Vec<&str> = self.variants.iter().map(|variant| variant.name.as_str()).collect();
        if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
            let known = names.join("\", \"");
            return Err(InputError(format!("`--only` must name one of \"{known}\"; it is \"{unknown}\"")));
        }
        if !only.is_empty() {
            self.variants.retain(|variant| only.contains(&variant.name));
        }
        if !seeds.is_empty() {
            self.seeds = seeds.to_vec();
        }
        self.check().map_err(InputError)
    }

    fn check(&self) -> Result<(), String> {
        if self.seeds.is_empty() {
            return Err("`ablation.seeds` must have at least one seed; it is []".into());
        }
        if let Some(twice) = duplicate(&self.seeds) {
            return Err(format!("`ablation.seeds` must differ; {twice} stands twice"));
        }
        let names: Vec<&String> = self.variants.iter().map(|variant| &variant.name).collect();
        if let Some(twice) = duplicate(&names) {
            return Err(format!("`ablation.variants` must have different names; \"{twice}\" stands twice"));
        }
        match names.iter().find(|name| name.trim().is_empty()) {
            Some(name) => Err(format!("`ablation.variants` must have names; one is \"{name}\"")),
            None => Ok(()),
        }
    }
}

impl Variant {
    /// The variant with one more setting.
    fn with(&self, path: &str, value: &toml::Value) -> Self {
        let last = path.rsplit('.').next().unwrap_or(path);
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let mut set = self.set.clone();
        set.push(format!("{path}={value}"));
        Self { name: format!("{} · {last}={shown}", self.name), set }
    }
}

fn duplicate<T: PartialEq>(items: &[T]) -> Option<&T> {
    items.iter().enumerate().find(|(index, item)| items[..*index].contains(item)).map(|(_, item)| item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_and_axes_make_a_grid() {
        let text = r#"
            name = "x"
            [ablation]
            seeds = [3, 4]
            variants = [{ name = "A" }, { name = "B", set = ["method.kind=solo"] }]
            [ablation.axes]
            "linker.neighbours" = [1, 5]
            "encoder.kind" = ["mlp"]
        "#;
        let ablation = Ablation::parse(text).expect("a good file");
        let names: Vec<&str> = ablation.variants.iter().map(|v| v.name.as_str()).collect();
        let expected =
            ["A · kind=mlp · neighbours=1", "A · kind=mlp · neighbours=5", "B · kind=mlp · neighbours=1",
             "B · kind=mlp · neighbours=5"];
        assert_eq!(names, expected);
        let set = ["method.kind=solo", "encoder.kind=\"mlp\"", "linker.neighbours=5"];
        assert_eq!((ablation.seeds, ablation.variants[3].set.clone()), (vec![3, 4], set.map(String::from).to_vec()));
    }

    #[test]
    fn a_plain_experiment_is_one_cell() {
        let ablation = Ablation::parse("name = 'x'\nseed = 7").expect("a good file");
        assert_eq!((ablation.seeds.clone(), ablation.variants[0].name.as_str()), (vec![7], "x"));
    }

    #[test]
    fn bad_files_are_refused() {
        let check = |text: &str, part: &str| {
            let error = Ablation::parse(text).expect_err("refused");
            assert!(error.contains(part), "{part} in {error}");
        };
        check("x = 1", "`name` is missing");
        check("name = '../x'", "plain file name; it is \"../x\"");
        check("name = ", "line 1");
        check("name = 'x'\n[ablation]\nseed = [1]", "unknown field `seed`");
        check("name = 'x'\n[ablation]\nseeds = []", "at least one seed");
        check("name = 'x'\n[ablation]\nseeds = [1, 2, 1]", "1 stands twice");
        check("name = 'x'\n[ablation]\nseeds = ['a']", "`ablation`");
        check("name = 'x'\n[ablation]\nvariants = [{name='A'}, {name='A'}]", "\"A\" stands twice");
        check("name = 'x'\n[ablation]\nvariants = [{name=' '}]", "must have names");
        check("name = 'x'\n[ablation]\nvariants = [{name='A', sets=[]}]", "unknown field `sets`");
        check("name = 'x'\n[ablation]\naxes = { 'a.b' = [] }", "at least one value");
    }

    #[test]
    fn a_choice_must_exist() {
        let mut ablation = Ablation::parse("name='x'\n[ablation]\nvariants=[{name='A'},{name='B'}]").expect("good");
        let error = ablation.choose(&["C".to_string()], &[]).expect_err("refused").to_string();
        assert!(error.contains("one of \"A\", \"B\"; it is \"C\""), "{error}");
        ablation.choose(&["B".to_string()], &[5]).expect("a good choice");
        assert_eq!((ablation.variants.len(), ablation.seeds), (1, vec![5]));
    }
}
