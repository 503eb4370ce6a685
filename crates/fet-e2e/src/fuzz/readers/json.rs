//! Records that programs exchange: reports, events, questions, answers. A record that is accepted, written
//! and read again must be unchanged, without lost fields.

use fet_eval::records::{Report, RunEvent, ShowAnswer, ShowQuestion};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fuzz::contract::{ReaderOutcome, outcome};

pub(super) fn records() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"event":"start","epochs":3,"metric":"rmse","rows":{"train":7,"validation":1,"test":2}}"#,
        r#"{"event":"progress","epoch":1,"epochs":3,"fraction":0.5,"loss":null,"rows_per_second":1e3}"#,
        r#"{"event":"epoch","epoch":1,"epochs":3,"loss":0.25,"validation":1.5,"test":null,"seconds":0.1}"#,
        r#"{"event":"done","report":"runs/x/report.json"}"#,
        r#"{"set":["train.epochs=3","linker.kind=\"top1\""],"seed":null}"#,
        r#"{"experiment":{"name":"x"},"data":"abc","results":5}"#,
        r#"{"error":"x.toml: `y` is no setting"}"#,
    ];
    let mut all: Vec<Vec<u8>> = lines.map(|line| line.as_bytes().to_vec()).to_vec();
    all.push(include_bytes!("report.json").to_vec());
    all
}

pub(super) fn read(bytes: &[u8]) -> ReaderOutcome {
    let mut last = String::new();
    for attempt in [again::<RunEvent>, again::<ShowQuestion>, again::<ShowAnswer>, again::<Report>] {
        match outcome(attempt(bytes)) {
            ReaderOutcome::Refused(message) => last = message,
            found => return found,
        }
    }
    ReaderOutcome::Refused(last)
}

fn again<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<Option<String>, String> {
    let words = |error: serde_json::Error| {
        format!("line {}: {}", error.line(), if error.is_data() { "another record" } else { "no JSON" })
    };
    let first: T = serde_json::from_slice(bytes).map_err(words)?;
    let written = serde_json::to_string(&first).map_err(words)?;
    let Ok(second) = serde_json::from_str::<T>(&written) else {
        return Ok(Some(format!("{written} is refused")));
    };
    if serde_json::to_string(&second).map_err(words)? != written {
        return Ok(Some(format!("{written} is read differently")));
    }
    let [given, made] = [serde_json::from_slice::<Value>(bytes), serde_json::from_str(&written)];
    let (given, made) = (given.map_err(words)?, made.map_err(words)?);
    Ok(lost(&given, &made).then(|| format!("{given} became {made}")))
}

/// Returns true if a given value is absent or different.
fn lost(given: &Value, made: &Value) -> bool {
    match (given, made) {
        (Value::Object(given), Value::Object(made)) => {
            given.iter().any(|(name, value)| made.get(name).is_none_or(|made| lost(value, made)))
        }
        (Value::Array(given), Value::Array(made)) => {
            given.len() != made.len() || given.iter().zip(made).any(|(given, made)| lost(given, made))
        }
        (Value::Number(given), Value::Number(made)) => given.as_f64() != made.as_f64(),
        (given, made) => given != made,
    }
}
