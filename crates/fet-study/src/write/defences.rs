//! Table of defences: the test metric, the leakage under each attack, and the scores.
//!
//! The module `defences` defines the scores; this module rounds and explains them.

use fet_eval::Direction;
use serde_json::{Map, Value, json};

use super::super::defences::{AttackSummary, BETA, BySeed, Defence, Defences, NOTHING, score, values};
use super::super::repetition::Repetition;
use super::super::statistics::{mean, standard_deviation};
use super::super::summary::StudySummary;
use super::table::{ReportTable, TableRow, epsilon_title, mean_and_deviation, privacy_loss, share};

/// Returns the table, with a row for each defence.
pub(super) fn table(summary: &StudySummary<'_>, defences: &Defences) -> ReportTable {
    let scores = defences.scores();
    let title = summary.metric.map_or_else(|| "metric".to_string(), |metric| metric.title());
    let mut header = vec!["defence".to_string(), format!("test {title}")];
    if summary.protects() {
        header.push(epsilon_title(summary));
    }
    if summary.protects_labels() {
        header.push("ε of labels".to_string());
    }
    header.extend(defences.attacks.iter().map(|attack| format!("leakage: {}", attack.name)));
    if scores {
        header.extend(defences.targets.iter().map(|target| format!("T-DCS {}", target.name())));
        header.push("C-DCS".to_string());
    }
    let differ = numbers_differ(defences);
    let field = |by_seed: &BySeed, show: &dyn Fn(f64) -> String| {
        let text = mean_and_deviation(&values(by_seed), show);
        let n = by_seed.len();
        if differ && n > 0 { format!("{text} (n = {n})") } else { text }
    };
    let row = |defence: &Defence| {
        let show = |value: f64| summary.metric.map_or_else(|| value.to_string(), |metric| metric.show(value));
        let mut fields = vec![defence.name.clone(), field(&defence.tests, &show)];
        if summary.protects() {
            fields.push(privacy_loss(epsilon(summary, defence)));
        }
        if summary.protects_labels() {
            fields.push(privacy_loss(label_epsilon(summary, defence)));
        }
        let shown = |by_seed: &BySeed| field(by_seed, &share);
        fields.extend(defence.leakage.iter().map(shown));
        if scores {
            fields.extend(defence.by_target.iter().chain([&defence.comprehensive]).map(shown));
        }
        TableRow { fields, differs: false }
    };
    ReportTable { header, rows: defences.defences.iter().map(row).collect() }
}

/// Returns true if the figures of the table cover different numbers of seeds. Empty fields do not count.
fn numbers_differ(defences: &Defences) -> bool {
    let of = |defence: &'_ Defence| {
        let scores = defence.by_target.iter().chain([&defence.comprehensive]);
        let all = defence.leakage.iter().chain([&defence.tests]).chain(scores);
        all.map(BySeed::len).collect::<Vec<_>>()
    };
    let mut numbers = defences.defences.iter().flat_map(of).filter(|n| *n > 0);
    let first = numbers.next();
    numbers.any(|n| Some(n) != first)
}

/// Returns the caption, which defines the figures of the table.
pub(super) fn caption(summary: &StudySummary<'_>, defences: &Defences) -> String {
    let leakage = "Mean ± deviation over seeds. Leakage: 0 is the attacker's success without the run, 1 is complete success.";
    let (true, Some(metric), Some(undefended)) = (defences.scores(), summary.metric, defences.undefended)
    else {
        return format!(
            "{leakage} Scores are missing, because no attack on the undefended run has a result, or because metrics differ."
        );
    };
    let name = metric.label();
    let loss = match metric.direction() {
        Direction::Maximise => format!("the {name} lost, from 0 to 1,"),
        Direction::Minimise => format!("the relative increase of the {name}, at most 1,"),
    };
    let base = &defences.defences[undefended].name;
    format!(
        "{leakage} The defence score is that of VFLAIR (Zou et al., ICLR 2024): DCS = 1 / (1 + √((1 − β) a² + β m²)) for each \
         attack and seed, where β = {BETA}, a is the leakage, and m is {loss} against the undefended run ({base}) with the same \
         seed. T-DCS is the mean of DCS over the attacks on one target, for the seeds that all these attacks have. C-DCS is the mean \
         of T-DCS with equal weights. A score of 1 means no leakage and no loss of utility; a leakage of 1 without loss of \
         utility scores {}, and the least is {}, with a leakage of 1 and a loss of 1. VFLAIR's program measures a from an attack \
         performance of 0; here a is measured from the attacker's success without the run, which no defence can reduce.",
        share(score(1.0, 0.0)),
        share(score(1.0, 1.0)),
    )
}

/// Returns notes on missing figures, with the reasons.
pub(super) fn notes(defences: &Defences) -> Vec<String> {
    let mut notes = Vec::new();
    if numbers_differ(defences) {
        notes.push("n: number of seeds of a figure, which differs between figures.".to_string());
    }
    let out: Vec<&str> =
        defences.attacks.iter().filter(|attack| !attack.counts).map(|attack| attack.name.as_str()).collect();
    if !out.is_empty() {
        notes.push(format!(
            "Left out of T-DCS and C-DCS: {}. Their mean leakage in the undefended run is at most {NOTHING}. Counting \
             them would make every defence look better.",
            out.join("; ")
        ));
    }
    if defences.scores() {
        // One note covers all defences that lack the same seeds.
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for defence in &defences.defences {
            let lacking = lacking(&defence.lacking(&defences.attacks));
            match groups.iter_mut().find(|(known, _)| *known == lacking) {
                _ if lacking.is_empty() => {}
                Some((_, names)) => names.push(&defence.name),
                None => groups.push((lacking, vec![&defence.name])),
            }
        }
        notes.extend(groups.into_iter().map(|(lacking, names)| {
            format!("No C-DCS for {}: attacks do not all have the same seeds ({lacking}).", names.join(", "))
        }));
    }
    let open = defences.defences.iter().filter(|defence| !defence.tests.is_empty() && !defence.is_attacked());
    let open: Vec<&str> = open.map(|defence| defence.name.as_str()).collect();
    if !open.is_empty() {
        notes.push(format!("Not attacked: {}.", open.join("; ")));
    }
    notes
}

/// Lists the attacks with their missing seeds, as part of a sentence.
fn lacking(all: &[(&AttackSummary, Vec<Repetition>)]) -> String {
    let part = |(attack, seeds): &(&AttackSummary, Vec<Repetition>)| {
        let word = if seeds.len() == 1 { "seed" } else { "seeds" };
        let seeds: Vec<String> = seeds.iter().map(Repetition::to_string).collect();
        format!("{} lacks {word} {}", attack.name, seeds.join(", "))
    };
    all.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// Returns the defences as JSON, with unrounded numbers.
pub(super) fn json(summary: &StudySummary<'_>, defences: &Defences) -> Value {
    let attacks = defences.attacks.iter().map(|attack| {
        json!({
            "name": attack.name,
            "settings": attack.settings,
            "attacker": attack.attacker.name(),
            "target": attack.target.name(),
            "party": attack.party,
            "measure": attack.measure,
            "counts": attack.counts,
        })
    });
    let row = |defence: &Defence| {
        let attacks = defences.attacks.iter().enumerate().map(|(index, attack)| {
            let own = json!({
                "leakage": figures(&defence.leakage[index]), "dcs": figures(&defence.scores[index]),
            });
            (attack.name.clone(), own)
        });
        let lacking = defence.lacking(&defences.attacks).into_iter();
        let lacking = lacking.map(|(attack, seeds)| {
            (attack.name.clone(), seeds.iter().map(Repetition::json).collect::<Value>())
        });
        let targets = defences.targets.iter().zip(&defence.by_target);
        let targets = targets.map(|(target, scores)| (target.name().to_string(), figures(scores)));
        json!({
            "name": defence.name,
            "variants": defence.variants.iter().map(|&row| &summary.rows[row].variant.name).collect::<Vec<_>>(),
            "test": figures(&defence.tests),
            "epsilon": epsilon(summary, defence).map(bound),
            "label_epsilon": label_epsilon(summary, defence).map(bound),
            "attacks": attacks.collect::<Map<_, _>>(),
            "t_dcs": targets.collect::<Map<_, _>>(),
            "c_dcs": figures(&defence.comprehensive),
            "lacking_seeds": lacking.collect::<Map<_, _>>(),
        })
    };
    json!({
        "undefended": defences.undefended.map(|number| &defences.defences[number].name),
        "score": {
            "beta": BETA,
            "attack_performance": "leakage",
            "ideal_attack_performance": 0.0,
            "weights": "equal",
            "nothing": NOTHING,
            "definition": caption(summary, defences),
        },
        "notes": notes(defences),
        "attacks": attacks.collect::<Vec<_>>(),
        "defences": defences.defences.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Returns mean, standard deviation, number of seeds, and the value of each seed, or null without seeds.
fn figures(by_seed: &BySeed) -> Value {
    if by_seed.is_empty() {
        return Value::Null;
    }
    let seeds: Map<String, Value> =
        by_seed.iter().map(|(seed, value)| (seed.to_string(), json!(value))).collect();
    let values = values(by_seed);
    json!({ "mean": mean(&values), "std": standard_deviation(&values), "n": values.len(), "seeds": seeds })
}

fn epsilon(summary: &StudySummary<'_>, defence: &Defence) -> Option<f64> {
    defence.variants.iter().filter_map(|&row| summary.rows[row].epsilon()).max_by(f64::total_cmp)
}

fn label_epsilon(summary: &StudySummary<'_>, defence: &Defence) -> Option<f64> {
    defence.variants.iter().filter_map(|&row| summary.rows[row].label_epsilon()).max_by(f64::total_cmp)
}

/// Returns ε as JSON. Infinity becomes "inf", because JSON has no number for it.
pub(super) fn bound(epsilon: f64) -> Value {
    if epsilon.is_finite() { json!(epsilon) } else { json!("inf") }
}

#[cfg(test)]
#[path = "defences/tests.rs"]
mod tests;
