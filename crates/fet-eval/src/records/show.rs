//! Identity of a run, and the protocol of `fet show --batch`: a question and an answer on one line of JSON
//! each.
//!
//! Only `fet` knows the settings; in this module an experiment is a JSON value.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::nullable;

/// Identity of a run. Equal identities give equal reports, except for `cost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunIdentity {
    /// All settings, including defaults.
    pub experiment: Value,
    /// Checksum of the files named in the data settings.
    pub data: String,
    /// [`RESULTS_VERSION`](super::RESULTS_VERSION).
    pub results: u32,
}

/// Question about one experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowQuestion {
    /// Changes after those of the command line, each as `path=value`.
    pub set: Vec<String>,
    /// Replaces the value of the command line, if not `null`.
    #[serde(deserialize_with = "nullable::given")]
    pub seed: Option<u64>,
}

/// Answer: the identity of the experiment, or the reason why it is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "AnswerLine", into = "AnswerLine")]
pub enum ShowAnswer {
    /// A line with the fields of a [`RunIdentity`].
    Identity(RunIdentity),
    /// A line with the field `error`: the problem with the experiment.
    Refused(String),
}

/// Union of the fields of both answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<ShowAnswer> for AnswerLine {
    fn from(answer: ShowAnswer) -> Self {
        match answer {
            ShowAnswer::Identity(RunIdentity { experiment, data, results }) => Self {
                experiment: Some(experiment),
                data: Some(data),
                results: Some(results),
                ..Self::default()
            },
            ShowAnswer::Refused(error) => Self { error: Some(error), ..Self::default() },
        }
    }
}

impl TryFrom<AnswerLine> for ShowAnswer {
    type Error = &'static str;

    fn try_from(line: AnswerLine) -> Result<Self, &'static str> {
        match line {
            AnswerLine {
                experiment: Some(experiment),
                data: Some(data),
                results: Some(results),
                error: None,
            } => Ok(Self::Identity(RunIdentity { experiment, data, results })),
            AnswerLine { experiment: None, data: None, results: None, error: Some(error) } => {
                Ok(Self::Refused(error))
            }
            _ => Err("an answer has `experiment`, `data` and `results`, or `error`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_a_round_trip() {
        for line in [r#"{"experiment":{"b":1,"a":2},"data":"d","results":1}"#, r#"{"error":"a: unknown"}"#] {
            let answer: ShowAnswer = serde_json::from_str(line).expect(line);
            assert_eq!(serde_json::to_string(&answer).expect("plain data"), line);
        }
        for line in [
            "{}",
            r#"{"experiment":{},"data":"d"}"#,
            r#"{"experiment":{},"data":"d","results":1,"error":"e"}"#,
            r#"{"experiment":{},"data":"d","results":1,"new":2}"#,
        ] {
            serde_json::from_str::<ShowAnswer>(line).expect_err(line);
        }
    }

    #[test]
    fn refuses_incomplete_questions() {
        let line = r#"{"set":["a=1"],"seed":0}"#;
        let question: ShowQuestion = serde_json::from_str(line).expect(line);
        assert_eq!(serde_json::to_string(&question).expect("plain data"), line);
        assert_eq!(
            serde_json::from_str::<ShowQuestion>(r#"{"set":[],"seed":null}"#).expect("whole").seed,
            None
        );
        for line in ["{}", r#"{"set":[]}"#, r#"{"seed":1}"#, r#"{"set":[],"seed":1,"new":2}"#] {
            serde_json::from_str::<ShowQuestion>(line).expect_err(line);
        }
    }
}
