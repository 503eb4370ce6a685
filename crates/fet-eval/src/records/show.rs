//! Identity of a run, and the protocol of `fet show --batch`: a question and an answer on one line of JSON
//! each.
//!
//! Only `fet` knows the settings; in this module an experiment is a JSON value.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::program::ProgramIdentity;
use crate::nullable;

/// Identity of a run. Equal identities give equal reports, except for `cost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunIdentity {
    /// Program of the run; `None` is `fet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramIdentity>,
    /// All settings, including defaults.
    pub experiment: Value,
    /// Checksum of the files named in the data settings.
    pub data: String,
    /// [`RESULTS_VERSION`](super::RESULTS_VERSION); 0 for another program.
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
    /// A line with the fields of a [`RunIdentity`]. Another program leaves out `results`, and may leave out `data`.
    Identity(RunIdentity),
    /// A line with the field `error`: the problem with the experiment.
    Refused(String),
}

/// Union of the fields of both answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramIdentity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Problem with an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Answer of another program without a required field.
    #[error("missing field `{0}`")]
    Missing(&'static str),
    /// Answer without `program` and without a field that `fet` gives.
    #[error("missing field `{0}`; a program other than `fet` needs the field `program`")]
    MissingOfFet(&'static str),
    /// Answer that is both an identity and a refusal.
    #[error("the field `error` excludes all other fields")]
    Both,
    /// Answer of another program with `fet`'s version of results.
    #[error("the field `results` belongs to `fet`; another program has `program.version` instead")]
    Results,
    /// Program whose name is empty or that of `fet`.
    #[error("`program.name` must be the name of a program other than `fet`, but is {0:?}")]
    Name(String),
}

impl From<ShowAnswer> for AnswerLine {
    fn from(answer: ShowAnswer) -> Self {
        match answer {
            ShowAnswer::Identity(RunIdentity { program, experiment, data, results }) => Self {
                results: program.is_none().then_some(results),
                program,
                experiment: Some(experiment),
                data: Some(data),
                error: None,
            },
            ShowAnswer::Refused(error) => Self { error: Some(error), ..Self::default() },
        }
    }
}

impl TryFrom<AnswerLine> for ShowAnswer {
    type Error = AnswerError;

    fn try_from(line: AnswerLine) -> Result<Self, AnswerError> {
        let AnswerLine { program, experiment, data, results, error } = line;
        if let Some(error) = error {
            let is_alone = program.is_none() && experiment.is_none() && data.is_none() && results.is_none();
            return if is_alone { Ok(Self::Refused(error)) } else { Err(AnswerError::Both) };
        }
        let Some(program) = program else {
            return Ok(Self::Identity(RunIdentity {
                program: None,
                experiment: experiment.ok_or(AnswerError::MissingOfFet("experiment"))?,
                data: data.ok_or(AnswerError::MissingOfFet("data"))?,
                results: results.ok_or(AnswerError::MissingOfFet("results"))?,
            }));
        };
        if results.is_some() {
            return Err(AnswerError::Results);
        }
        if program.name.trim().is_empty() || program.name == "fet" {
            return Err(AnswerError::Name(program.name));
        }
        let experiment = experiment.ok_or(AnswerError::Missing("experiment"))?;
        let data = data.unwrap_or_default();
        Ok(Self::Identity(RunIdentity { program: Some(program), experiment, data, results: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_a_round_trip() {
        for line in [
            r#"{"experiment":{"b":1,"a":2},"data":"d","results":1}"#,
            r#"{"program":{"name":"p","version":"1"},"experiment":{"b":1},"data":"d"}"#,
            r#"{"error":"a: unknown"}"#,
        ] {
            let answer: ShowAnswer = serde_json::from_str(line).expect(line);
            assert_eq!(serde_json::to_string(&answer).expect("plain data"), line);
        }
        let shortest = r#"{"program":{"name":"p","version":"1"},"experiment":{}}"#;
        let answer: ShowAnswer = serde_json::from_str(shortest).expect(shortest);
        let ShowAnswer::Identity(identity) = answer else { panic!("{answer:?}") };
        assert_eq!((identity.data.as_str(), identity.results), ("", 0));
    }

    #[test]
    fn errors_name_the_missing_field() {
        for (line, expected) in [
            ("{}", "missing field `experiment`; a program other than `fet` needs the field `program`"),
            (r#"{"data":"d","results":1}"#, "missing field `experiment`"),
            (r#"{"experiment":{},"results":1}"#, "missing field `data`"),
            (r#"{"experiment":{},"data":"d"}"#, "missing field `results`"),
            (r#"{"experiment":{},"data":"d","results":1,"error":"e"}"#, "`error` excludes"),
            (r#"{"experiment":{},"data":"d","results":1,"new":2}"#, "unknown field `new`"),
            (r#"{"program":{"name":"p","version":"1"}}"#, "missing field `experiment`"),
            (r#"{"program":{"name":"p"},"experiment":{}}"#, "missing field `version`"),
            (r#"{"program":{"version":"1"},"experiment":{}}"#, "missing field `name`"),
            (r#"{"program":{"name":"fet","version":"1"},"experiment":{}}"#, "other than `fet`"),
            (r#"{"program":{"name":" ","version":"1"},"experiment":{}}"#, "`program.name` must be"),
            (
                r#"{"program":{"name":"p","version":"1"},"experiment":{},"results":1}"#,
                "field `results` belongs",
            ),
        ] {
            let error = serde_json::from_str::<ShowAnswer>(line).expect_err(line).to_string();
            assert!(error.contains(expected), "{error} of {line}");
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
