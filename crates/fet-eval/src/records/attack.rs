//! Attack results in a report.

use serde::{Deserialize, Serialize};

/// Result of an attack on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackRecord {
    /// Name of the attack.
    pub attack: String,
    /// Role of the attacker.
    pub attacker: Attacker,
    /// Target of the attack.
    pub target: Target,
    /// Number of the attacked or attacking secondary, from 1.
    pub party: usize,
    /// Number of runs trained for the attack, without the reported run.
    pub runs: usize,
    /// Measures of success. The first is the main result of the attack; the others add detail.
    pub measures: Vec<Measure>,
}

/// Measure of an attack's success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Name of the measure.
    pub name: String,
    /// Value that the attacker reached.
    pub value: f64,
    /// Value that the attacker reaches without the run: by guessing, or from prior knowledge.
    pub baseline: f64,
    /// Value of a complete success.
    pub perfect: f64,
}

/// Role of an attacker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attacker {
    /// The party with the labels.
    Primary,
    /// Another party.
    Secondary,
}

/// Target of an attack: the types of VFLAIR (Zou et al. 2024, table 1), and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The primary's training labels.
    Labels,
    /// Another party's features.
    Features,
    /// Membership of a record in a secondary's table.
    Membership,
    /// Correctness of a record's link.
    Links,
    /// Predictions of the trained model.
    Predictions,
}

impl Attacker {
    /// Returns the role's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        }
    }
}

impl Target {
    /// Returns the target's name in reports.
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
    /// Returns the leakage of the first measure, from 0 to 1.
    pub fn leakage(&self) -> f64 {
        self.measures.first().map_or(0.0, Measure::leakage)
    }
}

impl Measure {
    /// Creates a measure on the scale from `baseline` to `perfect`.
    pub fn new(name: impl Into<String>, value: f64, baseline: f64, perfect: f64) -> Self {
        Self { name: name.into(), value, baseline, perfect }
    }

    /// Returns the leakage of the run: the position of the value on the scale from baseline (0) to complete
    /// success (1).
    pub fn leakage(&self) -> f64 {
        let way = self.perfect - self.baseline;
        if way == 0.0 { 0.0 } else { ((self.value - self.baseline) / way).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leakage_is_relative_to_the_baseline() {
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
