//! Compares the files of a run with those of the simulation of the same experiment, byte for byte.

use std::path::Path;

use anyhow::Context;

/// Files of the primary that must be equal.
pub(crate) const OF_PRIMARY: [&str; 3] = ["report.json", "predictions.csv", "model.safetensors"];

/// Returns the differences of a run from the simulation. `out` is the primary's folder, `models` the model of
/// each other party.
pub(crate) fn differences(
    simulation: &Path,
    out: &Path,
    models: &[impl AsRef<Path>],
) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let digests = [fingerprint(simulation), fingerprint(out)];
    for name in OF_PRIMARY {
        found.extend(difference(name, &simulation.join(name), &out.join(name), &digests)?);
    }
    for (at, model) in models.iter().enumerate() {
        let name = format!("parties/party{}/model.safetensors", at + 1);
        found.extend(difference(&name, &simulation.join(&name), model.as_ref(), &digests)?);
    }
    Ok(found)
}

/// Returns the difference between the reports of a simulation and a run, without the costs of the machine.
pub(crate) fn reports(simulation: &Path, out: &Path) -> anyhow::Result<Option<String>> {
    let [expected, found] = [simulation, out].map(|folder| folder.join(OF_PRIMARY[0]));
    difference(OF_PRIMARY[0], &expected, &found, &[fingerprint(simulation), fingerprint(out)])
}

/// Returns the digest of the files that a run has read, as stored in the report and in the model. A
/// simulation has another digest, because it reads the files of all parties.
fn fingerprint(out: &Path) -> Option<String> {
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("report.json")).ok()?).ok()?;
    let digest = report.pointer("/data/files")?.as_str()?;
    (digest.len() == 64).then(|| digest.to_string())
}

fn difference(
    name: &str,
    expected: &Path,
    found: &Path,
    digests: &[Option<String>; 2],
) -> anyhow::Result<Option<String>> {
    let expected = std::fs::read(expected).with_context(|| format!("{}", expected.display()))?;
    let Ok(found) = std::fs::read(found) else { return Ok(Some(format!("{name} is missing"))) };
    let (mut expected, mut found) = match name {
        "report.json" => (without_cost(&expected)?, without_cost(&found)?),
        _ => (expected, found),
    };
    if let [Some(simulated), Some(own)] = digests
        && simulated != own
        && OF_PRIMARY.contains(&name)
    {
        replace(&mut expected, simulated.as_bytes(), own.as_bytes());
        // A model begins with its checksum, which covers the digest of the files.
        blank_checksum(&mut expected);
        blank_checksum(&mut found);
    }
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

/// Returns a table without the similarities of links, which only a simulation knows.
pub(crate) fn without_similarities(text: &str) -> String {
    let header = text.lines().next().unwrap_or_default();
    let kept: Vec<bool> = header.split(',').map(|title| !title.starts_with("similarity to ")).collect();
    let line = |line: &str| {
        let cells = line.split(',').zip(&kept).filter(|(_, kept)| **kept).map(|(cell, _)| cell);
        cells.collect::<Vec<_>>().join(",") + "\n"
    };
    text.lines().map(line).collect()
}

/// Returns a report without its costs, without digests keyed with the parties' secrets, and without the
/// warning of a rehearsal.
fn without_cost(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut report: serde_json::Value = serde_json::from_slice(bytes).context("report.json")?;
    if let Some(report) = report.as_object_mut() {
        report.shift_remove("cost");
        // A simulation is not a rehearsal.
        if let Some(warnings) = report.get_mut("warnings").and_then(serde_json::Value::as_array_mut) {
            warnings.retain(|warning| {
                !warning.as_str().is_some_and(|text| text.starts_with("this run is a rehearsal"))
            });
        }
    }
    // These digests are keyed with secrets that a simulation lacks. The parties' models still contain the
    // digests.
    if let Some(data) = report.pointer_mut("/data").and_then(serde_json::Value::as_object_mut) {
        data.shift_remove("tables");
    }
    Ok(serde_json::to_vec_pretty(&report)?)
}

/// Replaces the checksum at the beginning of a model by zeros.
fn blank_checksum(bytes: &mut [u8]) {
    let title = br#"sha256\":\""#;
    let Some(at) = (0..bytes.len().min(200)).find(|&at| bytes[at..].starts_with(title)) else { return };
    let from = at + title.len();
    if let Some(digits) = bytes.get_mut(from..from + 64) {
        digits.fill(b'0');
    }
}

/// Replaces every occurrence of `old` by `new` of the same length.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    for at in 0..(bytes.len() + 1).saturating_sub(old.len()) {
        if bytes[at..].starts_with(old) {
            bytes[at..at + old.len()].copy_from_slice(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cost_and_the_files_read_may_differ() {
        let digest = |c: &str| c.repeat(64);
        let report = |files: &str, loss: f64, seconds: f64| {
            format!(
                "{{\"data\":{{\"files\":\"{files}\"}},\"loss\":{loss},\"cost\":{{\"seconds\":{seconds}}}}}"
            )
        };
        for (files, loss, model, expected) in [
            (digest("a"), 1.0, "x", 0),
            (digest("b"), 1.0, "x", 0),
            (digest("b"), 1.5, "x", 1),
            (digest("a"), 1.0, "y", 2),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let [simulation, out] = ["simulation", "out"].map(|name| folder.path().join(name));
            for (place, files, loss, model, seconds) in
                [(&simulation, digest("a"), 1.0, "x", 1.0), (&out, files.clone(), loss, model, 2.0)]
            {
                std::fs::create_dir_all(place.join("parties/party1")).expect("a folder");
                std::fs::write(place.join("report.json"), report(&files, loss, seconds)).expect("a file");
                std::fs::write(place.join("predictions.csv"), "").expect("a file");
                // A model of the primary begins with its checksum, which covers the files' digest.
                let checksum = if files.starts_with('a') { "1" } else { "2" }.repeat(64);
                let primary = format!("sha256\\\":\\\"{checksum} {files} {model}");
                std::fs::write(place.join("model.safetensors"), primary).expect("a file");
                std::fs::write(place.join("parties/party1/model.safetensors"), model).expect("a file");
            }
            let party = [out.join("parties/party1/model.safetensors")];
            let found = differences(&simulation, &out, &party).expect("it can be read");
            assert_eq!(found.len(), expected, "{found:?}");
        }
    }
}
