//! `results.json`: the whole summary for programs, with unrounded numbers.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::added::Added;
use super::super::row::Row;
use super::super::statistics::paired::PairedComparison;
use super::super::summary::StudySummary;
use super::defences::{self, bound};
use super::metrics;

/// Returns the text of `results.json`.
pub(super) fn text(summary: &StudySummary<'_>) -> Result<String> {
    let grid = summary.grid;
    let mut value = json!({
        "study": grid.name,
        "profile": grid.profile,
        "question": grid.head.question,
        "seeds": grid.seeds,
        "folds": grid.folds,
        "delta": summary.delta(),
        "metric": summary.metric,
        "cells": {
            "all": summary.cells.len(),
            "done": summary.results.len(),
            "failed": summary.failures.len(),
        },
        "variants": summary.rows.iter().map(|row| variant(summary, row)).collect::<Vec<_>>(),
        "added": added(summary),
        "failures": summary.failures.iter().map(|(cell, failure)| json!({
            "variant": cell.variant, "seed": cell.repetition.json(), "problem": failure.problem,
        })).collect::<Vec<_>>(),
        "notes": summary.notes,
    });
    if let Some(defences) = &summary.defences {
        value["defences"] = defences::json(summary, defences);
    }
    let text = serde_json::to_string_pretty(&value).context("a summary is plain data")?;
    Ok(format!("{text}\n"))
}

/// Returns a difference and its test as JSON.
pub(super) fn compared(comparison: &PairedComparison) -> Value {
    json!({
        "pairs": comparison.n,
        "difference": comparison.difference,
        "test": comparison.test.as_ref().map(|test| json!({
            "interval": [comparison.difference - test.half_width, comparison.difference + test.half_width],
            "p": test.p,
            "p_holm": test.corrected,
            "p_sign_flip": test.exact,
            "effect_d": test.effect,
            "power": {
                "level": test.power.level,
                "detectable_difference": test.power.detectable(comparison.n),
                "pairs_for_this_difference": test.power.needed(comparison.difference),
            },
        })),
        "over_rows": match &comparison.over_rows {
            Ok(found) => json!(found),
            Err(reason) => json!({ "undefined": reason }),
        },
    })
}

fn variant(summary: &StudySummary<'_>, row: &Row<'_>) -> Value {
    let comparison = row.comparison.as_ref().map(|comparison| {
        let mut value = compared(comparison);
        value["base"] = row.base.map(|base| summary.rows[base].variant.name.as_str()).into();
        value
    });
    // serde_json writes NaN and infinity as null.
    json!({
        "name": row.variant.name,
        "variant": row.variant.root,
        "axes": row.variant.point.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "set": row.variant.sets,
        "n": row.tests.len(),
        "tests": row.tests,
        "mean": row.mean(),
        "std": row.deviation(),
        "half_width_95": row.half_width(),
        "comparison": comparison,
        "epsilon": row.epsilon().map(bound),
        "label_epsilon": row.label_epsilon().map(bound),
        "seconds": row.mean_of(|result| result.report.cost.seconds),
        "metrics": metrics::json(summary, row),
        "interval_half_width_95": metrics::interval_json(row),
    })
}

/// Returns the contributions as JSON, with unrounded numbers.
fn added(summary: &StudySummary<'_>) -> Vec<Value> {
    let one = |added: &Added| {
        let name = |index: usize| summary.rows[index].variant.run();
        let mut value = compared(&added.comparison);
        value["variant"] = name(added.index).into();
        value["control"] = name(added.control).into();
        value
    };
    summary.added.iter().map(one).collect()
}
