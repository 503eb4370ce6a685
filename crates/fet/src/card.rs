//! The model card of a finished run: its purpose, data, quality and disclosures, for people (Mitchell et al.
//! 2019, "Model Cards for Model Reporting").
//!
//! The card contains only information from the report.

use std::fmt::Write;

use fet_core::experiment::Experiment;
use fet_eval::conformal::{COVERAGE, Conformal};
use fet_eval::records::{Guarantee, LabelPrivacy, Report};
use fet_eval::{Estimate, Metric, ScoreValue};
use fet_federation::prepare::{Period, Reference};
use fet_federation::trainer::Trainer;

use crate::bounds;
use crate::code::python_code;
use crate::drift;

/// Returns the card of a run as Markdown.
pub(crate) fn card(
    experiment: &Experiment,
    trainer: &Trainer,
    report: &Report,
    conformal: Option<&Conformal>,
) -> anyhow::Result<String> {
    let mut card = String::new();
    let method = experiment.method.kinds();
    let _ = writeln!(card, "# Model card: {}\n", plain(&experiment.name));
    let _ = writeln!(
        card,
        "Made by `fet` {} ({}; version {} of its results) with the method `{method}` and the seed {}.\n",
        report.program.version, report.program.commit, report.program.results, report.seed
    );
    for sentence in python_code(experiment) {
        let _ = writeln!(card, "{sentence}\n");
    }
    let reference = trainer.reference();
    data(&mut card, report, &reference);
    scores(&mut card, report, conformal);
    parties(&mut card, experiment, trainer, report)?;
    limits(&mut card, report, &reference);
    Ok(card)
}

fn data(card: &mut String, report: &Report, reference: &Reference) {
    let rows = report.rows;
    let _ = writeln!(card, "## Data\n");
    let _ = writeln!(
        card,
        "| | |\n|---|---|\n| training rows | {} |\n| validation rows (used to choose the epoch) | {} |\n| test rows | \
         {} |",
        rows.train, rows.validation, rows.test
    );
    if let Some(Period { column, from, to }) = &reference.period {
        let _ = writeln!(card, "| period of the training rows ({}) | {from} to {to} |", plain(column));
    }
    if !report.class_names.is_empty() {
        let _ = writeln!(
            card,
            "| classes | {} |",
            report.class_names.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", ")
        );
    }
    let _ = writeln!(card, "| checksum of the files | `{}` |", report.data.files);
    let _ = writeln!(card, "| checksum of the split | `{}` |\n", report.data.split);
}

fn scores(card: &mut String, report: &Report, conformal: Option<&Conformal>) {
    let Report { metric, best, evaluation, epochs, .. } = report;
    let _ = writeln!(card, "## Quality\n");
    let _ = writeln!(
        card,
        "By {metric} on the validation rows, epoch {} of {} is the best. Scores on the test rows:\n\n| metric | value \
         |\n|---|---|",
        best.epoch,
        epochs.len()
    );
    for (one, value) in evaluation.test.iter() {
        let value = match value {
            ScoreValue::Value(value) => {
                format_value(one, *value, (one == *metric).then_some(&evaluation.interval))
            }
            ScoreValue::Undefined(why) => format!("undefined: {why}"),
        };
        let _ = writeln!(card, "| {} | {value} |", one.title());
    }
    let _ = writeln!(card);
    for (setting, value) in &report.fitted {
        let _ = writeln!(
            card,
            "The validation rows also determined `{setting}`: {value:.3}. Their scores are therefore slightly too good.\n"
        );
    }
    if let Some(conformal) = conformal {
        let _ = writeln!(
            card,
            "Each prediction has an interval, or a set of classes, that contains the true value with probability {} \
             ({COVERAGE}).\n",
            1.0 - conformal.alpha
        );
    }
    if let Some(coverage) = &report.coverage {
        let _ = writeln!(
            card,
            "Coverage on the test rows, calibrated on {} validation rows:\n\n{}",
            coverage.calibration_rows,
            bounds::table(coverage, &report.class_names.iter().map(|name| plain(name)).collect::<Vec<_>>())
        );
    }
}

fn format_value(metric: Metric, value: f64, interval: Option<&Estimate>) -> String {
    match interval {
        Some(Estimate::Interval(interval)) => format!(
            "{} ({} to {}: bootstrap over the test rows, {} %)",
            metric.show(value),
            metric.show(interval.lower),
            metric.show(interval.upper),
            100.0 * (1.0 - interval.alpha)
        ),
        _ => metric.show(value),
    }
}

fn parties(
    card: &mut String,
    experiment: &Experiment,
    trainer: &Trainer,
    report: &Report,
) -> anyhow::Result<()> {
    let _ = writeln!(card, "## Parties and disclosures\n");
    let federation = trainer.federation();
    if let Some(release) = &report.release {
        let _ = writeln!(
            card,
            "Each secondary made one release, and took no part in the training. {}\n",
            release.primary_sentence()
        );
        let labels = report.labels.as_ref().map(LabelPrivacy::sentence);
        let sentences = release.sentences();
        let all = sentences.iter().chain(&labels).chain([&release.statement]).chain(&release.assumptions);
        for sentence in all {
            let _ = writeln!(card, "- {}", plain(sentence));
        }
        let _ = writeln!(card);
        return Ok(());
    }
    if federation.is_empty() {
        let _ = writeln!(card, "The primary trained alone; no data left it.\n");
        return Ok(());
    }
    let names: Vec<&str> = (0..federation.len()).map(|party| federation.name(party)).collect();
    let _ = writeln!(
        card,
        "The primary, \"{}\", has the labels; the others are {}.\n",
        plain(&trainer.records().scaled.name),
        names.iter().map(|name| format!("\"{}\"", plain(name))).collect::<Vec<_>>().join(", ")
    );
    let about = experiment.linker.build(&())?.about();
    let _ = writeln!(
        card,
        "- Linker `{}`: a secondary learns {}{}",
        experiment.linker.kinds(),
        about.reveals.secondary,
        if experiment.train.refine_keys {
            "; the keys are linear functions of the primary's columns (`train.refine_keys`), one for each key column"
        } else {
            ""
        }
    );
    let _ = writeln!(card, "- the primary learns {}", about.reveals.primary);
    let _ = writeln!(
        card,
        "- Aggregator `{}`, mechanism `{}`, label protection `{}`.",
        experiment.aggregator.kind(),
        experiment.privacy.kind(),
        experiment.labels.kind()
    );
    let epsilon =
        |epsilon: Option<f64>| epsilon.map_or("no bound".to_string(), |epsilon| format!("ε = {epsilon:.4}"));
    if let Some(spent) = &report.privacy {
        let _ = writeln!(
            card,
            "- Privacy of the secondaries' records: {}, δ = {}. {}",
            epsilon(spent.epsilon),
            spent.delta,
            spent.statement
        );
        if let Some(collusion) = spent.guarantee.as_ref().and_then(Guarantee::collusion) {
            let _ = writeln!(card, "- {collusion}. The noise covers `privacy.colluding` colluding parties.");
        }
    }
    if let Some(labels) = &report.labels {
        let _ = writeln!(card, "- {}", labels.sentence());
    }
    let _ = writeln!(card);
    Ok(())
}

fn limits(card: &mut String, report: &Report, reference: &Reference) {
    let _ = writeln!(card, "## Limits\n");
    let _ = writeln!(
        card,
        "- The test rows have the same source as the training rows. The figures may not hold for rows from another \
         place or time.\n- Metrics, intervals and sets of classes assume rows like the {}. The inputs of later rows may look the \
         same while their labels changed, for example because prices rose: `fet predict --labels` measures this.\n- The \
         figures describe no groups of rows, except for the groups in `evaluation.groups` of \
         `report.json`.",
        drift::described(reference)
    );
    for warning in &report.warnings {
        let _ = writeln!(card, "- {}", plain(warning));
    }
}

/// Returns a text on one line, with Markdown and HTML signs of a user's name escaped.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            sign if sign.is_control() => plain.push(' '),
            '|' | '[' | ']' => plain.extend(['\\', sign]),
            sign => plain.push(sign),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        for (name, expected) in [
            ("plain (name)", "plain (name)"),
            ("<b onmouseover=x>", "&lt;b onmouseover=x>"),
            ("C | D", "C \\| D"),
            ("a\n# head", "a # head"),
            ("[x](y)", "\\[x\\](y)"),
            ("R&D", "R&amp;D"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
