//! Programs other than `fet` that run the cells of a study: their identity, and the report that they write.
//!
//! The report of another program has few required fields, because the harness computes the evaluation from the run's
//! predictions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attack::AttackRecord;
use super::privacy::{LabelPrivacy, Spent};
use super::report::{Rows, Traffic};
use crate::Metric;

/// Identity of a program other than `fet`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramIdentity {
    /// Name of the program. A study's folder holds the results of one name.
    pub name: String,
    /// Version of the program's results, such as a hash of its source. Another version computes the cell again.
    pub version: String,
}

/// Report of a finished run of another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramReport {
    /// Program, as in the answer of `show --batch`.
    pub program: ProgramIdentity,
    /// Settings and seed, as in the answer.
    pub experiment: Value,
    /// Checksum of the data, as in the answer.
    #[serde(default)]
    pub data: String,
    /// Main metric.
    pub metric: Metric,
    /// Number of rows in each part.
    pub rows: Rows,
    /// Epoch and figures of the result.
    #[serde(default)]
    pub best: ProgramBest,
    /// Checksum of the split. Runs with the same checksum can be compared row by row. By default the harness computes it
    /// from the rows of the predictions.
    #[serde(default)]
    pub split: Option<String>,
    /// Results of each epoch.
    #[serde(default)]
    pub epochs: Vec<ProgramEpoch>,
    /// Number of trained parameters.
    #[serde(default)]
    pub parameters: usize,
    /// Number of secondaries.
    #[serde(default)]
    pub secondaries: usize,
    /// Device of the run.
    #[serde(default)]
    pub device: String,
    /// Warnings about unusual data.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Privacy loss of the records.
    #[serde(default)]
    pub privacy: Option<Spent>,
    /// Privacy loss of the training labels.
    #[serde(default)]
    pub labels: Option<LabelPrivacy>,
    /// Result of the attack.
    #[serde(default)]
    pub attack: Option<AttackRecord>,
    /// Bytes of payload between the primary and all secondaries.
    #[serde(default)]
    pub traffic: Traffic,
    /// Time and memory.
    #[serde(default)]
    pub cost: ProgramCost,
}

/// Result of another program's run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramBest {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Validation metric. By default the harness computes it from the predictions.
    pub validation: Option<f64>,
    /// Test metric, required without predictions. By default the harness computes it from the predictions.
    pub test: Option<f64>,
}

impl Default for ProgramBest {
    fn default() -> Self {
        Self { epoch: 1, validation: None, test: None }
    }
}

/// Results of an epoch of another program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramEpoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Mean training loss.
    #[serde(default)]
    pub train_loss: Option<f64>,
    /// Validation metric.
    #[serde(default)]
    pub validation: Option<f64>,
    /// Test metric.
    #[serde(default)]
    pub test: Option<f64>,
    /// Bytes of payload sent in the epoch.
    #[serde(default)]
    pub traffic: Traffic,
}

/// Time and memory of another program's run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramCost {
    /// Seconds of the run; 0 if unknown.
    pub seconds: f64,
    /// Training rows per second; 0 if unknown.
    pub train_rows_per_second: f64,
    /// Peak memory of the process; 0 if unknown.
    pub peak_memory_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: &str = r#"{"program":{"name":"p","version":"1"},"experiment":{"seed":0},"metric":"accuracy",
        "rows":{"train":8,"validation":0,"test":2}}"#;

    #[test]
    fn few_fields_are_required() {
        let report: ProgramReport = serde_json::from_str(SHORTEST).expect("whole");
        assert_eq!((report.best, report.data.as_str()), (ProgramBest::default(), ""));
        let again = serde_json::to_string(&report).expect("plain data");
        assert_eq!(serde_json::from_str::<ProgramReport>(&again).expect("whole"), report);
    }

    #[test]
    fn errors_name_the_field() {
        for (from, to, expected) in [
            (r#""metric""#, r#""metrics""#, "unknown field `metrics`"),
            (r#""metric":"accuracy","#, "", "missing field `metric`"),
            (r#","version":"1""#, "", "missing field `version`"),
            (r#""experiment":{"seed":0},"#, "", "missing field `experiment`"),
            (r#""train":8,"#, "", "missing field `train`"),
            ("accuracy", "acuracy", "unknown variant `acuracy`"),
        ] {
            let text = SHORTEST.replacen(from, to, 1);
            let error = serde_json::from_str::<ProgramReport>(&text).expect_err(&text).to_string();
            assert!(error.contains(expected), "{error} of {text}");
        }
    }
}
