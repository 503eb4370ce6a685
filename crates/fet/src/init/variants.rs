//! Variants of the study that `fet init` suggests.

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
            Self::Alone => "the primary alone",
            Self::Together => "with the other parties",
            Self::RandomLinks => "with random records of the other parties",
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

/// Returns the variants of the experiment.
pub(super) fn variants() -> Vec<Variant> {
    let variant = |name: &str, reason: &str, set: &[&str], control: Option<&str>, role| Variant {
        name: name.into(),
        reason: reason.into(),
        set: set.iter().map(|set| (*set).to_string()).collect(),
        control: control.map(String::from),
        role,
    };
    vec![
        variant("FeT", "the experiment above", &[], Some("FeT alone"), Role::Together),
        variant(
            "FeT alone",
            "the same method without the other parties",
            &["method.kind=fet-alone"],
            None,
            Role::Alone,
        ),
        variant(
            "boosted trees, alone",
            "a strong method of the primary alone",
            &["method.kind=gbdt-solo"],
            None,
            Role::Alone,
        ),
        variant(
            "FeT, random links",
            "wrong links: a lead over the control does not come from the others' records",
            &["linker.kind=random", "linker.neighbours=1"],
            Some("FeT alone"),
            Role::RandomLinks,
        ),
    ]
}
