//! Methods: the method of the experiment, and the variants of the study that `fet init` suggests.

use super::keys::KeyChoice;
use super::linking::Linking;

/// Number of training rows below which dropout and small trees help.
pub(super) const SMALL: usize = 30_000;

/// Data that a variant sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The primary's own columns.
    Alone,
    /// The primary's columns and those of the other parties.
    Together,
    /// The primary's columns and random records of the other parties.
    RandomLinks,
}

impl Role {
    /// Returns a description of the data.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Alone => "The primary alone",
            Self::Together => "With the other parties",
            Self::RandomLinks => "With random records of the other parties",
        }
    }
}

/// Variant of the experiment: a method, or another linker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    /// Name in tables.
    pub(crate) name: String,
    /// Reason for the variant, on one line.
    pub(crate) reason: String,
    /// Changes to the experiment, each as `path=value`.
    pub(crate) set: Vec<String>,
    /// Name of the control variant: the same method without the other parties.
    pub(crate) control: Option<String>,
    /// Data that the variant sees.
    pub(crate) role: Role,
}

/// Name of the variant that all others are compared with.
pub(crate) const BASE: &str = "boosted trees, alone";

/// Settings of `fet-pool`, each as a path below the method and a value.
pub(super) fn settings_of_pool(keys: &KeyChoice, train: usize) -> Vec<(&'static str, &'static str)> {
    // Grids need a higher rate than the other weights; without them a lower rate overfits less.
    let (rate, dropout) = if keys.are_places() { ("0.003", "0.1") } else { ("0.001", "0.3") };
    let mut settings = vec![("optimizer.learning_rate", rate)];
    if train < SMALL {
        settings.push(("dropout", dropout));
    }
    if keys.are_places() {
        settings.push(("key_encoding.grid.width", "8"));
    }
    settings
}

/// Returns the variants of the experiment.
pub(super) fn variants(pool: &[(&str, &str)], linking: &Linking, train: usize) -> Vec<Variant> {
    use Role::{Alone, RandomLinks, Together};
    let variant = |name: &str, reason: &str, set: Vec<String>, control: Option<&str>, role| Variant {
        name: name.into(),
        reason: reason.into(),
        set,
        control: control.map(String::from),
        role,
    };
    let text = |set: &str| set.to_string();
    let of_pool = |more: &[&str]| -> Vec<String> {
        let settings = pool.iter().map(|(path, value)| format!("method.{path}={value}"));
        [text("method.kind=fet-pool")]
            .into_iter()
            .chain(settings)
            .chain(more.iter().map(|set| text(set)))
            .collect()
    };
    let of_trees = |more: &[&str]| -> Vec<String> {
        [text("method.kind=fet-trees")].into_iter().chain(more.iter().map(|set| text(set))).collect()
    };
    let of_fet = |kind: &str| vec![format!("method.kind={kind}"), text("method.dropout=0.1")];
    let trees = |kind: &str| {
        let shape = ["method.leaves=31", "method.column_share=1.0"].into_iter().filter(|_| train < SMALL);
        [format!("method.kind={kind}")].into_iter().chain(shape.map(text)).collect::<Vec<_>>()
    };
    let random = vec![text("linker.kind=random"), format!("linker.neighbours={}", linking.neighbours)];
    let mut all = vec![
        variant(BASE, "a strong model to beat", trees("gbdt-solo"), None, Alone),
        variant("linear, alone", "a simple model", vec![text("method.kind=linear-solo")], None, Alone),
        variant(
            "FeT-Pool with trees, alone",
            "the experiment's method without the others, its control",
            vec![text("method.inner.others=false")],
            None,
            Alone,
        ),
        variant(
            "FeT-Pool with trees",
            "the experiment as above",
            Vec::new(),
            Some("FeT-Pool with trees, alone"),
            Together,
        ),
        variant(
            "FeT-Pool with trees, random links",
            "a lead over the control with wrong links does not come from the others' records",
            random,
            Some("FeT-Pool with trees, alone"),
            RandomLinks,
        ),
        variant(
            "FeT-Trees, alone",
            "boosted trees of all parties without the others, the control of the next variant",
            of_trees(&["method.others=false"]),
            None,
            Alone,
        ),
        variant(
            "FeT-Trees",
            "boosted trees of all parties, whose columns stay with them",
            of_trees(&[]),
            Some("FeT-Trees, alone"),
            Together,
        ),
        variant(
            "FeT-Pool alone",
            "the network without trees, the control of the next variant",
            of_pool(&["method.others=false"]),
            None,
            Alone,
        ),
        variant(
            "FeT-Pool",
            "the network without trees",
            of_pool(&["encoder.kind=mlp"]),
            Some("FeT-Pool alone"),
            Together,
        ),
        variant(
            "FeT alone",
            "the decoder of FeT, the control of the next variant",
            of_fet("fet-alone"),
            None,
            Alone,
        ),
        variant("FeT", "the Federated Transformer", of_fet("fet"), Some("FeT alone"), Together),
        variant(
            "boosted trees, nearest record",
            "trees on the joined tables, which is not federated: a figure to compare with",
            trees("gbdt-top1"),
            Some(BASE),
            Together,
        ),
    ];
    if linking.perhaps_one_to_one {
        all.push(variant(
            "FeT-Pool with trees, one to one",
            "keys are unique on both sides: a record may belong to one row at most",
            vec![text("linker.one_to_one=true")],
            Some("FeT-Pool with trees, alone"),
            Together,
        ));
    }
    all
}
