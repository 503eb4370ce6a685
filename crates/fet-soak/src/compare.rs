//! What a run wrote, held against what the simulation of the same experiment wrote, byte for byte.

use std::path::Path;

use anyhow::Context;

/// The files of the primary that must be equal.
const OF_PRIMARY: [&str; 3] = ["report.json", "predictions.csv", "model.safetensors"];

/// The ways in which a run differs: `out` is the primary's folder, `models` the model of each other party.
pub(crate) fn differences(
    simulation: &Path,
    out: &Path,
    models: &[impl AsRef<Path>],
) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in OF_PRIMARY {
        found.extend(difference(name, &simulation.join(name), &out.join(name))?);
    }
    for (at, model) in models.iter().enumerate() {
        let name = format!("parties/party{}/model.safetensors", at + 1);
        found.extend(difference(&name, &simulation.join(&name), model.as_ref())?);
    }
    Ok(found)
}

fn difference(name: &str, expected: &Path, found: &Path) -> anyhow::Result<Option<String>> {
    let expected = std::fs::read(expected).with_context(|| format!("{}", expected.display()))?;
    let Ok(found) = std::fs::read(found) else { return Ok(Some(format!("{name} is missing"))) };
    let (expected, found) = match name {
        "report.json" => (without_cost(&expected)?, without_cost(&found)?),
        _ => (expected, found),
    };
    if expected == found {
        return Ok(None);
    }
    let at = expected.iter().zip(&found).take_while(|(one, other)| one == other).count();
    let near = |bytes: &[u8]| {
        let part = &bytes[at.saturating_sub(60).min(bytes.len())..(at + 60).min(bytes.len())];
        String::from_utf8_lossy(part).escape_debug().to_string()
    };
    let sizes = format!("{} and {} bytes", expected.len(), found.len());
    let shown = match name.ends_with(".safetensors") {
        true => String::new(),
        false => format!(": `{}`, and in the simulation `{}`", near(&found), near(&expected)),
    };
    Ok(Some(format!("{name} differs at byte {at} ({sizes}){shown}")))
}

/// A report but for what the machine took.
fn without_cost(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut report: serde_json::Value = serde_json::from_slice(bytes).context("report.json")?;
    if let Some(report) = report.as_object_mut() {
        report.shift_remove("cost");
    }
    Ok(serde_json::to_vec_pretty(&report)?)
}
