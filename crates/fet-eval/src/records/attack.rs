//! What an attack found, as it stands in a report.

use serde::{Deserialize, Serialize};

/// What an attack on a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackRecord {
    /// The attack.
    pub attack: String,
    /// Who attacks.
    pub attacker: Attacker,
    /// What it is after.
    pub target: Target,
    /// The attacked or the attacking secondary, from 1.
    pub party: usize,
    /// How many runs were trained for it, besides the reported one.
    pub runs: usize,
    /// What it reached. The first is the attack's result; the others show it from other sides.
    pub measures: Vec<Measure>,
}

/// A figure of an attack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What it is.
    pub name: String,
    /// What the attacker reached.
    pub value: f64,
    /// What it reaches without the run: by guessing, or from what it had before.
    pub baseline: f64,
    /// What a complete success would be.
    pub perfect: f64,
}

/// Who attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attacker {
    /// The party with the labels.
    Primary,
    /// Another party.
    Secondary,
}

/// What an attack is after: the types of VFLAIR (Zou et al. 2024, table 1), and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The primary's training labels.
    Labels,
    /// Another party's features.
    Features,
    /// Whether a record is in a secondary's table.
    Membership,
    /// Whether a record was linked to one that it belongs to.
    Links,
    /// What the trained model predicts.
    Predictions,
}

impl Attacker {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        }
    }
}

impl Target {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Features => "features",
            Self::Membership => "membership",
            Self::Links => "links",
            Self::Predictions => "predictions",
        }
    }
}

impl AttackRecord {
    /// How far the attack came, from 0 to 1: that of its first measure.
    pub fn leakage(&self) -> f64 {
        self.measures.first().map_or(0.0, Measure::leakage)
    }
}

impl Measure {
    /// A figure that is between `baseline` and `perfect`.
    pub fn new(name: impl Into<String>, value: f64, baseline: f64, perfect: f64) -> Self {
        Self { name: name.into(), value, baseline, perfect }
    }

    /// The way from the baseline to a complete success, from 0 to 1: what the run gave away.
    pub fn leakage(&self) -> f64 {
        let way = self.perfect - self.baseline;
        if way == 0.0 { 0.0 } else { ((self.value - self.baseline) / way).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leakage_is_the_way_from_the_baseline() {
        for (value, baseline, perfect, expected) in [
            (0.9, 0.5, 1.0, 0.8),
            (0.3, 0.5, 1.0, 0.0),
            (0.25, 1.0, 0.0, 0.75),
            (1.2, 1.0, 0.0, 0.0),
            (1.0, 1.0, 1.0, 0.0),
        ] {
            let found = Measure::new("m", value, baseline, perfect).leakage();
            assert!((found - expected).abs() < 1e-12, "{value} {baseline} {perfect}: {found}");
        }
    }
}
