//! Audits one experiment under every mechanism and every neighbouring relation, and prints a table.

use std::fmt::Write;

use fet_core::experiment::Experiment;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{SettingsError, plugins};

use super::{Audit, Settings, input};

/// Returns one experiment for each mechanism and relation. It keeps the experiment's privacy settings that the
/// mechanism also has.
fn variants(experiment: &Experiment) -> Result<Vec<Experiment>, SettingsError> {
    let own = experiment.privacy.settings();
    let mut all = Vec::new();
    for plugin in plugins::<dyn PrivacyMechanism>() {
        let known = plugin.defaults();
        let mut settings: toml::Table = known.clone();
        settings.extend(own.clone().into_iter().filter(|(field, _)| known.contains_key(field)));
        settings.insert("kind".to_string(), plugin.kind.into());
        let relations: &[_] = if known.contains_key("neighbouring") {
            &[Some("record"), Some("replace"), Some("add-remove")]
        } else {
            &[None]
        };
        for relation in relations {
            let mut settings = settings.clone();
            if let Some(relation) = relation {
                settings.insert("neighbouring".to_string(), (*relation).into());
            }
            let mut table = experiment.to_table();
            table.insert("privacy".to_string(), settings.into());
            all.push(Experiment { folder: experiment.folder.clone(), ..Experiment::from_table(table)? });
        }
    }
    Ok(all)
}

/// Audits the experiment under every mechanism and relation by `audit`. Returns a Markdown table, and true if a
/// claim is refuted.
pub fn table(
    experiment: &Experiment,
    settings: &Settings,
    audit: impl Fn(&Experiment, &Settings) -> anyhow::Result<Audit>,
) -> anyhow::Result<(String, bool)> {
    let variants = variants(experiment).map_err(input)?;
    let each = Settings { alpha: settings.alpha / variants.len().max(1) as f64, ..*settings };
    let mut text = format!(
        "Lower bounds on ε, simultaneous at α = {}: {} runs with one canary, one run with {} canaries.\n\n| mechanism \
         | neighbouring | learning | δ | moved (accounted) | claimed ε | ε ≥, many runs | ε ≥, many runs (Gaussian) | \
         ε ≥, one run |\n|---|---|---|---|---|---|---|---|---|\n",
        settings.alpha, settings.runs, settings.canaries
    );
    let mut refuted = false;
    let mut why = String::new();
    for variant in &variants {
        let found = audit(variant, &each)?;
        refuted |= found.refuted;
        let _ = writeln!(text, "{}", row(&found));
        found.why.iter().for_each(|one| why.push_str(&format!("- {}: {one}\n", found.mechanism)));
    }
    if !why.is_empty() {
        let _ = write!(text, "\nRefuted:\n\n{why}");
    }
    Ok((text, refuted))
}

fn row(found: &Audit) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_string(), |value| format!("{value:.2}"));
    let word = |value: Option<String>| value.unwrap_or_else(|| "–".to_string()).trim_matches('"').to_string();
    let json = |value: serde_json::Result<String>| value.ok().filter(|text| text != "null");
    format!(
        "| {} | {} | {} | {:e} | {:.2} ({}) | {} | {:.2} | {} | {:.2} ({} of {} right) |",
        found.mechanism,
        word(json(serde_json::to_string(&found.neighbouring))),
        word(json(serde_json::to_string(&found.learning))),
        found.delta,
        found.moved,
        number(found.accounted),
        number(found.epsilon),
        found.many_runs,
        number(found.many_runs_gaussian),
        found.one_run,
        found.right,
        found.guesses,
    )
}
