//! The table of defences: what each costs, what leaks under each attack, and its scores.
//!
//! How a score is defined stands in `defences`; here it is rounded and explained.

use fet_records::{Direction, MetricName};
use serde_json::{Map, Value, json};

use super::super::defences::{BETA, BySeed, Defence, Defences};
use super::super::statistics::{mean, standard_deviation};
use super::super::summary::Summary;
use super::json::bound;
use super::table::{Table, TableRow, epsilon_title, mean_and_deviation, privacy_loss, share};

/// A row for each defence.
pub(super) fn table(summary: &Summary<'_>, defences: &Defences) -> Table {
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
    let row = |defence: &Defence| {
        let show = |value: f64| summary.metric.map_or_else(|| value.to_string(), |metric| metric.show(value));
        let mut fields = vec![defence.name.clone(), mean_and_deviation(&values(&defence.tests), show)];
        if summary.protects() {
            fields.push(privacy_loss(epsilon(summary, defence)));
        }
        if summary.protects_labels() {
            fields.push(privacy_loss(label_epsilon(summary, defence)));
        }
        let shown = |by_seed: &BySeed| mean_and_deviation(&values(by_seed), share);
        fields.extend(defence.leakage.iter().map(shown));
        if scores {
            fields.extend(defence.by_target.iter().chain([&defence.comprehensive]).map(shown));
        }
        TableRow { fields, differs: false }
    };
    Table { header, rows: defences.defences.iter().map(row).collect() }
}

/// What the table's figures are.
pub(super) fn caption(summary: &Summary<'_>, defences: &Defences) -> String {
    let leakage = "Mean ± deviation over seeds. Leakage: 0 is what the attacker reaches without the run, 1 a complete success.";
    let (true, Some(metric), Some(undefended)) = (defences.scores(), summary.metric, defences.undefended)
    else {
        return format!("{leakage} No scores: the undefended run has no result, or metrics differ.");
    };
    let name = match metric.name {
        MetricName::Accuracy => "accuracy",
        MetricName::Rmse => "RMSE",
    };
    let loss = match metric.direction {
        Direction::Maximise => format!("the {name} lost, from 0 to 1,"),
        Direction::Minimise => format!("the relative increase of the {name}, at most 1,"),
    };
    let base = &defences.defences[undefended].name;
    format!(
        "{leakage} The defence score is that of VFLAIR (Zou et al., ICLR 2024): DCS = 1 / (1 + √((1 − β) a² + β m²)) for each \
         attack and seed, where β = {BETA}, a is the leakage, and m is {loss} against the undefended run ({base}) with the same \
         seed. T-DCS is its mean over the attacks on one target, C-DCS the mean of T-DCS with equal weights; 1 leaks nothing \
         and costs nothing. VFLAIR's program measures a from an attack performance of 0; here it is from what the attacker \
         reaches without the run, which no defence can take away."
    )
}

/// The same for programs, unrounded.
pub(super) fn json(summary: &Summary<'_>, defences: &Defences) -> Value {
    let attacks = defences.attacks.iter().map(|attack| {
        json!({
            "name": attack.name,
            "settings": attack.settings,
            "attacker": attack.attacker.name(),
            "target": attack.target.name(),
            "party": attack.party,
            "measure": attack.measure,
        })
    });
    let row = |defence: &Defence| {
        let attacks = defences.attacks.iter().enumerate().map(|(index, attack)| {
            let own = json!({
                "leakage": figures(&defence.leakage[index]), "dcs": figures(&defence.scores[index]),
            });
            (attack.name.clone(), own)
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
        })
    };
    json!({
        "undefended": defences.undefended.map(|number| &defences.defences[number].name),
        "score": {
            "beta": BETA,
            "attack_performance": "leakage",
            "ideal_attack_performance": 0.0,
            "weights": "equal",
            "definition": caption(summary, defences),
        },
        "attacks": attacks.collect::<Vec<_>>(),
        "defences": defences.defences.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Mean, deviation and each seed; nothing without seeds.
fn figures(by_seed: &BySeed) -> Value {
    if by_seed.is_empty() {
        return Value::Null;
    }
    let seeds: Map<String, Value> =
        by_seed.iter().map(|(seed, value)| (seed.to_string(), json!(value))).collect();
    json!({ "mean": mean(&values(by_seed)), "std": standard_deviation(&values(by_seed)), "seeds": seeds })
}

fn values(by_seed: &BySeed) -> Vec<f64> {
    by_seed.values().copied().collect()
}

fn epsilon(summary: &Summary<'_>, defence: &Defence) -> Option<f64> {
    defence.variants.iter().filter_map(|&row| summary.rows[row].epsilon()).max_by(f64::total_cmp)
}

fn label_epsilon(summary: &Summary<'_>, defence: &Defence) -> Option<f64> {
    defence.variants.iter().filter_map(|&row| summary.rows[row].label_epsilon()).max_by(f64::total_cmp)
}
