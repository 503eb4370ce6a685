//! Variants that `fet worth` runs: each method alone and with the other parties, and the checks of the best.

use fet_core::experiment::set;
use fet_study::CollectVariant;

/// Method that the command runs twice: on the primary's own columns, and with the other parties.
#[derive(Debug, Clone)]
pub(super) struct MethodPair {
    /// Name in tables.
    pub(super) name: &'static str,
    /// Data that the primary receives from the other parties.
    pub(super) receives: Receives,
    /// Settings with the other parties, each as `path=value`.
    pub(super) with: Vec<String>,
    /// Settings on the primary's own columns.
    pub(super) alone: Vec<String>,
}

/// Data that the primary receives from the other parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Receives {
    /// Representations, so that no column leaves its party.
    Representations,
    /// The columns of linked records: a measure of the data's value that needs their owners' consent.
    Columns,
}

/// Facts about an experiment that decide its variants.
#[derive(Debug, Clone)]
pub(super) struct ExperimentFacts {
    /// Number of records that the linker finds for a row.
    pub(super) neighbours: u64,
    /// True if the keys are numbers, such as coordinates.
    pub(super) has_places: bool,
    /// Names of the other parties, if each of them can be left out.
    pub(super) others: Vec<String>,
    /// Value of `data.secondaries`, to leave a party out.
    secondaries: Vec<toml::Value>,
}

impl ExperimentFacts {
    /// Reads the facts from an experiment with all defaults filled in.
    pub(super) fn new(experiment: &toml::Table) -> Self {
        let lookup = |path: &[&str]| {
            let first = experiment.get(path[0]);
            path[1..].iter().fold(first, |value, name| value.and_then(|value| value.get(*name)))
        };
        let neighbours = lookup(&["linker", "neighbours"]).or(lookup(&["linker", "inner", "neighbours"]));
        let neighbours = neighbours.and_then(toml::Value::as_integer).and_then(|k| u64::try_from(k).ok());
        let is_text = ["key_kind", "keys"].iter().any(|name| {
            lookup(&["data", name])
                .and_then(toml::Value::as_str)
                .is_some_and(|kind| kind == "text" || kind == "names")
        });
        let secondaries =
            lookup(&["data", "secondaries"]).and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let name = |(at, party): (usize, &toml::Value)| {
            let text =
                |field: &str| party.get(field).and_then(toml::Value::as_str).filter(|text| !text.is_empty());
            text("name").or(text("file")).map_or_else(|| format!("party {}", at + 1), str::to_string)
        };
        Self {
            neighbours: neighbours.unwrap_or(1),
            has_places: !is_text,
            others: secondaries.iter().enumerate().map(name).collect(),
            secondaries,
        }
    }

    /// Returns the settings that leave one party out, or `None` if the experiment has no other party then.
    pub(super) fn without(&self, party: usize) -> Option<Vec<String>> {
        let mut left = self.secondaries.clone();
        if left.len() < 2 {
            return None;
        }
        left.remove(party);
        Some(vec![format!("data.secondaries={}", toml::Value::Array(left))])
    }

    /// Returns the settings for links at random.
    pub(super) fn random_links(&self) -> Vec<String> {
        vec!["linker.kind=random".to_string(), format!("linker.neighbours={}", self.neighbours)]
    }
}

/// Returns the methods to compare. `quick` leaves out the slowest.
pub(super) fn methods(facts: &ExperimentFacts, quick: bool) -> Vec<MethodPair> {
    let sets = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let grid = if facts.has_places { "8" } else { "0" };
    let pool = |place: &str| {
        vec![
            format!("{place}.kind=fet-pool"),
            format!("{place}.key_encoding.grid.width={grid}"),
            format!("{place}.optimizer.learning_rate=0.003"),
        ]
    };
    let inside = || [vec!["method.kind=with-trees".to_string()], pool("method.inner")].concat();
    let encoder = || "encoder.kind=mlp".to_string();
    let mut methods = vec![
        MethodPair {
            name: "linear model",
            receives: Receives::Columns,
            with: sets(&["method.kind=linear-top1"]),
            alone: sets(&["method.kind=linear-solo"]),
        },
        MethodPair {
            name: "boosted trees",
            receives: Receives::Columns,
            with: sets(&["method.kind=gbdt-top1"]),
            alone: sets(&["method.kind=gbdt-solo"]),
        },
        MethodPair {
            name: "FeT-Pool",
            receives: Receives::Representations,
            with: [pool("method"), vec![encoder()]].concat(),
            alone: [pool("method"), sets(&["method.others=false"])].concat(),
        },
        MethodPair {
            name: "FeT-Pool with trees",
            receives: Receives::Representations,
            with: [inside(), vec![encoder()]].concat(),
            alone: [inside(), sets(&["method.inner.others=false"])].concat(),
        },
    ];
    if !quick {
        methods.push(MethodPair {
            name: "FeT",
            receives: Receives::Representations,
            with: sets(&["method.kind=fet"]),
            alone: sets(&["method.kind=fet-alone"]),
        });
    }
    methods
}

/// Returns the name of a method's variant without the other parties.
pub(super) fn alone(method: &str) -> String {
    format!("{method}, alone")
}

/// Returns both variants of every method.
pub(super) fn pairs(methods: &[MethodPair]) -> Vec<CollectVariant> {
    let both = |method: &MethodPair| {
        let control = alone(method.name);
        [
            CollectVariant { name: control.clone(), sets: method.alone.clone(), control: None },
            CollectVariant {
                name: method.name.to_string(),
                sets: method.with.clone(),
                control: Some(control),
            },
        ]
    };
    methods.iter().flat_map(both).collect()
}

/// Returns the text of an experiment that changes the settings `sets` of the file `base` in the same folder.
pub(super) fn experiment_text(base: &str, sets: &[String]) -> anyhow::Result<String> {
    let mut changes = toml::Table::new();
    for assignment in sets {
        set(&mut changes, assignment)?;
    }
    let base = toml::Value::from(base);
    Ok(format!(
        "# Written by `fet worth`: the best method on the validation rows.\nextends = {base}\n\n{changes}"
    ))
}
