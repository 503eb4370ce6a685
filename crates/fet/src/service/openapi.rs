//! Descriptions of the model and of the service for programs.

use fet_core::data::Task;
use fet_tables::Kind;
use serde_json::{Map, Value, json};

use crate::folder::{MODEL, REPORT};
use crate::predict::{Model, are_independent, kinds};
use crate::provenance::files;
use fet_io::input::input;

/// Descriptions of the service.
pub(super) struct About {
    /// The model: its task, its columns and its parties.
    pub(super) model: Value,
    /// SHA-256 of the model, its calibration and the checksums of its tables.
    pub(super) digest: String,
    /// The service, by OpenAPI 3.1.
    pub(super) openapi: Value,
}

/// Describes the service of a model.
pub(super) fn about(model: &Model, most_rows: usize) -> anyhow::Result<About> {
    let Model { run, model: saved, .. } = model;
    let objective = saved.objective();
    let task = match objective.task {
        Task::Regression => "regression",
        Task::Binary => "binary",
        Task::Multiclass => "multiclass",
    };
    let settings = run.experiment.data.settings();
    let keys = settings.get("primary").and_then(|primary| primary.get("keys")).cloned();
    let keys: Vec<String> = keys.and_then(|keys| keys.try_into().ok()).unwrap_or_default();
    if keys.is_empty() {
        return Err(input(
            "the run has no table of the primary with key columns (`data.kind = \"linked\"`), so that new records have no columns",
        ));
    }
    let linker = run.experiment.linker.build(&()).map_err(input)?;
    let plan = run.experiment.method.build(&()).map_err(input)?.plan();
    let mut features = kinds(&run.experiment, saved)?;
    // New records need no label, and keys are listed apart.
    let label = settings.get("label").and_then(toml::Value::as_str);
    features.retain(|name, _| label != Some(name.as_str()) && !keys.contains(name));
    let parties: Vec<&str> = run.report.traffic_by_party.iter().map(|party| party.party.as_str()).collect();
    let columns: Vec<Value> =
        features.iter().map(|(name, kind)| json!({ "name": name, "kind": kind.to_string() })).collect();
    let mut properties: Map<String, Value> =
        keys.iter().map(|name| (name.clone(), json!({ "description": "key column" }))).collect();
    properties.extend(features.iter().map(|(name, kind)| (name.clone(), schema(kind))));
    let required: Vec<&String> = properties.keys().collect();
    let row = json!({ "type": "object", "required": required, "properties": properties });
    let digest = digest(model)?;
    let described = json!({
        "model": digest,
        "name": run.experiment.name,
        "task": task,
        "classes": saved.class_names(),
        "keys": keys,
        "columns": columns,
        "parties": parties,
        "most_rows": most_rows,
        "independent_rows": are_independent(&linker.about(), saved) || !plan.secondaries,
    });
    Ok(About { openapi: openapi(&run.experiment.name, &row, most_rows), model: described, digest })
}

/// Returns a digest of everything on this machine that the predictions depend on.
fn digest(model: &Model) -> anyhow::Result<String> {
    let Model { run, folders, calibration_file, .. } = model;
    let mut text = String::new();
    let of_run = [run.folder.join(MODEL), run.folder.join(REPORT)];
    for path in of_run.iter().chain(calibration_file) {
        let sum =
            fet_io::sha256_of_file(path).map_err(|error| input(format!("{}: {error}", path.display())))?;
        text += &format!("{}\n", fet_io::hex(&sum));
    }
    // Parties on other machines keep their tables to themselves.
    for (name, path) in files(&run.experiment, folders).map_err(input)? {
        let sum =
            fet_io::sha256_of_file(&path).map_or_else(|_| "absent".to_string(), |sum| fet_io::hex(&sum));
        text += &format!("{name} {sum}\n");
    }
    Ok(fet_io::hex(&fet_io::sha256(text.as_bytes())))
}

/// Returns the schema of a cell.
fn schema(kind: &Kind) -> Value {
    match kind {
        Kind::Number => json!({ "type": ["number", "string", "null"], "description": "number" }),
        other => json!({ "type": ["string", "number", "boolean", "null"], "description": other.to_string() }),
    }
}

fn openapi(name: &str, row: &Value, most_rows: usize) -> Value {
    let error = |meaning: &str| {
        let schema = json!({ "type": "object", "properties": { "error": { "type": "string" } } });
        json!({ "description": meaning, "content": { "application/json": { "schema": schema } } })
    };
    let rows = json!({ "type": "array", "items": row, "minItems": 1, "maxItems": most_rows });
    let request = json!({ "type": "object", "required": ["rows"], "properties": { "rows": rows } });
    let answer = json!({
        "type": "object",
        "properties": {
            "predictions": { "type": "array", "items": { "type": "object" } },
            "warnings": { "type": "array", "items": { "type": "string" } },
        },
    });
    let table = json!({ "schema": { "type": "string", "format": "binary" } });
    let forms = |schema: &Value| {
        let mut forms = json!({ "application/json": { "schema": schema }, "text/csv": table });
        if cfg!(feature = "columnar") {
            forms["application/vnd.apache.arrow.file"] = table.clone();
        }
        forms
    };
    let get = |summary: &str, more: Value| {
        let mut responses = json!({ "200": { "description": summary } });
        if let (Some(all), Value::Object(more)) = (responses.as_object_mut(), more) {
            all.extend(more);
        }
        json!({ "get": { "summary": summary, "responses": responses } })
    };
    json!({
        "openapi": "3.1.0",
        "info": { "title": format!("Predictions of the run {name}"), "version": env!("CARGO_PKG_VERSION") },
        "paths": {
            "/v1/predict": {
                "post": {
                    "summary": "Predict rows",
                    "parameters": [{
                        "name": "Request-Timeout",
                        "in": "header",
                        "description": "Longest time in seconds that the client waits",
                        "schema": { "type": "number", "exclusiveMinimum": 0 },
                    }],
                    "requestBody": { "required": true, "content": forms(&request) },
                    "responses": {
                        "200": { "description": "Predictions in the order of the rows", "content": forms(&answer) },
                        "400": error("The rows are invalid"),
                        "401": error("The token is missing or wrong"),
                        "403": error("A party refuses the request"),
                        "406": error("The answer cannot have the form that the client accepts"),
                        "413": error("The request is too large"),
                        "415": error("The request has an unknown form"),
                        "503": error("A party is away, or too many requests wait; try again"),
                        "504": error("No answer in time"),
                    },
                },
            },
            "/v1/model": get("Columns, classes and parties of the model", json!({ "401": error("The token is missing or wrong") })),
            "/metrics": get("Metrics in Prometheus' text format", json!({})),
            "/healthz": get("The process runs", json!({})),
            "/readyz": get("The next request can be answered", json!({ "503": error("A party is away") })),
        },
    })
}
