//! Variants that `fet worth` runs: each method alone and with the other parties, and the checks of the best.

use fet_core::experiment::set_all;
use fet_study::CollectVariant;

/// Method that the command runs twice: on the primary's own columns, and with the other parties.
#[derive(Debug, Clone)]
pub(super) struct MethodPair {
    /// Name in tables.
    pub(super) name: &'static str,
    /// Name of the variant on the primary's own columns. Two methods may share it.
    pub(super) control: &'static str,
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

/// Maximum number of epochs of FeT, which takes many times as long as the other methods.
const MOST_EPOCHS: i64 = 12;

/// Facts about an experiment that decide its variants.
#[derive(Debug, Clone)]
pub(super) struct ExperimentFacts {
    /// Number of records that the linker finds for a row.
    neighbours: u64,
    /// Number of epochs.
    epochs: i64,
    /// Names of the other parties, if each of them can be left out.
    pub(super) others: Vec<String>,
    /// True if the linker can restrict each record to one row, and does not.
    pub(super) may_be_one_to_one: bool,
    /// Settings of the pooled network, each as a path and a value.
    pool: Vec<(String, toml::Value)>,
    /// Settings of the shape of trees, from an experiment whose method has trees; otherwise empty, for the defaults.
    growth: Vec<(String, toml::Value)>,
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
        // Only tables of a pooled network have the setting `joint`.
        let pool = [lookup(&["method", "inner"]), lookup(&["method"])].into_iter().flatten();
        let pool = pool.filter_map(toml::Value::as_table).find(|table| table.contains_key("joint"));
        let pool = match pool {
            Some(own) => own
                .iter()
                .filter(|(name, _)| !["kind", "others"].contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            None => vec![
                ("key_encoding.grid.width".to_string(), toml::Value::Integer(if is_text { 0 } else { 8 })),
                ("optimizer.learning_rate".to_string(), toml::Value::Float(0.003)),
            ],
        };
        let growth = lookup(&["method", "growth"]).and_then(toml::Value::as_table);
        let is_shape = |name: &&String| !["trees", "learning_rate"].contains(&name.as_str());
        let growth = growth.into_iter().flat_map(toml::Table::iter).filter(|(name, _)| is_shape(name));
        let one_to_one = lookup(&["linker", "one_to_one"]).and_then(toml::Value::as_bool);
        let epochs = lookup(&["train", "epochs"]).and_then(toml::Value::as_integer);
        Self {
            neighbours: neighbours.unwrap_or(1),
            epochs: epochs.unwrap_or(MOST_EPOCHS),
            may_be_one_to_one: one_to_one == Some(false),
            pool,
            growth: growth.map(|(name, value)| (name.clone(), value.clone())).collect(),
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
    let pool = |place: &str| {
        let settings = facts.pool.iter().map(|(path, value)| format!("{place}.{path}={value}"));
        [format!("{place}.kind=fet-pool")].into_iter().chain(settings).collect::<Vec<_>>()
    };
    let short: &[&str] = match quick {
        true => &["method.growth.trees=500", "method.growth.learning_rate=0.1"],
        false => &[],
    };
    let inside = || {
        [sets(&["method.kind=with-trees", "method.share=fitted"]), sets(short), pool("method.inner")].concat()
    };
    let encoder = || "encoder.kind=mlp".to_string();
    // The validation rows choose the number of trees, so half of the trees at twice the rate are nearly as good.
    let trees = |kind: &str| {
        let number =
            if quick { ["trees=1000", "learning_rate=0.1"] } else { ["trees=2000", "learning_rate=0.05"] };
        let shape = facts.growth.iter().map(|(name, value)| format!("method.{name}={value}"));
        let number = number.iter().map(|set| format!("method.{set}"));
        [format!("method.kind={kind}")].into_iter().chain(number).chain(shape).collect::<Vec<_>>()
    };
    // Half of the steps at twice the rate, as for the trees.
    let across = |others: &str| {
        let number: &[&str] =
            if quick { &["method.growth.trees=400", "method.growth.learning_rate=0.06"] } else { &[] };
        let shape = facts.growth.iter().map(|(name, value)| format!("method.growth.{name}={value}"));
        [sets(&["method.kind=fet-trees", others]), sets(number), shape.collect()].concat()
    };
    let mut methods = vec![
        MethodPair {
            name: "linear model",
            control: "linear model, alone",
            receives: Receives::Columns,
            with: sets(&["method.kind=linear-top1"]),
            alone: sets(&["method.kind=linear-solo"]),
        },
        MethodPair {
            name: "boosted trees",
            control: "boosted trees, alone",
            receives: Receives::Columns,
            with: trees("gbdt-top1"),
            alone: trees("gbdt-solo"),
        },
        MethodPair {
            name: "FeT-Pool",
            control: "FeT-Pool, alone",
            receives: Receives::Representations,
            with: [pool("method"), sets(&["method.others=true"]), vec![encoder()]].concat(),
            alone: [pool("method"), sets(&["method.others=false"])].concat(),
        },
        MethodPair {
            name: "FeT-Pool with trees",
            control: "FeT-Pool with trees, alone",
            receives: Receives::Representations,
            with: [inside(), sets(&["method.inner.others=true"]), vec![encoder()]].concat(),
            alone: [inside(), sets(&["method.inner.others=false"])].concat(),
        },
    ];
    methods.push(MethodPair {
        name: "FeT-Trees",
        control: "FeT-Trees, alone",
        receives: Receives::Representations,
        with: across("method.others=true"),
        alone: across("method.others=false"),
    });
    if facts.may_be_one_to_one {
        methods.push(MethodPair {
            name: "FeT-Pool with trees, one to one",
            control: "FeT-Pool with trees, alone",
            receives: Receives::Representations,
            with: [inside(), sets(&["method.inner.others=true", "linker.one_to_one=true"]), vec![encoder()]]
                .concat(),
            alone: [inside(), sets(&["method.inner.others=false"])].concat(),
        });
    }
    if !quick {
        let short = format!("train.epochs={}", facts.epochs.min(MOST_EPOCHS));
        let transformer = |kind: &str| vec![format!("method.kind={kind}"), short.clone()];
        methods.push(MethodPair {
            name: "FeT",
            control: "FeT, alone",
            receives: Receives::Representations,
            with: transformer("fet"),
            alone: transformer("fet-alone"),
        });
    }
    methods
}

/// Returns both variants of every method, and a shared control once.
pub(super) fn pairs(methods: &[MethodPair]) -> Vec<CollectVariant> {
    let mut all: Vec<CollectVariant> = Vec::new();
    for method in methods {
        if all.iter().all(|known| known.name != method.control) {
            let name = method.control.to_string();
            all.push(CollectVariant { name, sets: method.alone.clone(), control: None });
        }
        let (name, control) = (method.name.to_string(), Some(method.control.to_string()));
        all.push(CollectVariant { name, sets: method.with.clone(), control });
    }
    all
}

/// Returns the text of an experiment that changes the settings `sets` of the file `base` in the same folder.
pub(super) fn experiment_text(base: &str, sets: &[String]) -> anyhow::Result<String> {
    let mut changes = toml::Table::new();
    set_all(&mut changes, sets)?;
    let base = toml::Value::from(base);
    Ok(format!(
        "# Written by `fet worth`: the best method on the validation rows.\nextends = {base}\n\n{changes}"
    ))
}
