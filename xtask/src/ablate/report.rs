//! What the study takes from a cell's `report.json`.
//!
//! A report counts only if it is of this very experiment on this very data; the file itself is `fet`'s.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::cell::Cell;

/// A finished run.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Report {
    experiment: Value,
    /// Which program made it.
    #[serde(default)]
    pub(crate) program: Program,
    /// What is measured.
    pub(crate) metric: Metric,
    /// The epoch that counts.
    pub(crate) best: Best,
    /// Time and memory.
    pub(crate) cost: Cost,
    /// Trained parameters.
    pub(crate) parameters: u64,
    /// What it was computed on.
    pub(crate) data: Data,
    /// The tensor backend.
    #[serde(default)]
    pub(crate) device: String,
    /// What each epoch gave.
    #[serde(default)]
    pub(crate) epochs: Vec<Epoch>,
    /// Bytes a deployment would have sent.
    #[serde(default)]
    pub(crate) traffic: Traffic,
    /// How many parties helped the primary.
    #[serde(default)]
    pub(crate) secondaries: u64,
    /// What the run's releases cost; nothing where no other party takes part.
    #[serde(default)]
    pub(crate) privacy: Option<Privacy>,
    /// What is odd about the data.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
}

/// What a run was computed on.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Data {
    /// Checksum of the files.
    files: String,
    /// Checksum of which rows were for what.
    #[serde(default)]
    pub(crate) split: String,
}

/// What an epoch gave.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Epoch {
    /// From 1.
    pub(crate) epoch: u64,
    /// Mean training loss.
    pub(crate) train_loss: f64,
    /// The validation metric; none where it was not a number.
    pub(crate) validation: Option<f64>,
    /// The test metric, where it was computed.
    pub(crate) test: Option<f64>,
    /// What the epoch sent.
    #[serde(default)]
    pub(crate) traffic: Traffic,
}

/// A privacy loss.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(crate) struct Privacy {
    epsilon: Option<f64>,
    /// δ.
    pub(crate) delta: f64,
}

impl Privacy {
    /// ε; infinite where it has no bound.
    pub(crate) fn epsilon(&self) -> f64 {
        self.epsilon.unwrap_or(f64::INFINITY)
    }
}

/// Bytes of payload, all secondaries together.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Traffic {
    /// From the primary.
    pub(crate) sent: u64,
    /// To the primary.
    pub(crate) received: u64,
}

/// Which program made a report.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Program {
    /// The commit it was built from.
    #[serde(default)]
    pub(crate) commit: String,
    /// The version of its results.
    #[serde(default)]
    results: u32,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Metric {
    /// `accuracy` or `rmse`.
    pub(crate) name: String,
    /// Which way is better.
    pub(crate) direction: Direction,
}

/// Which way a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// More.
    Maximise,
    /// Less.
    Minimise,
}

/// The epoch that counts.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Best {
    /// From 1.
    pub(crate) epoch: u64,
    /// Its validation metric.
    pub(crate) validation: f64,
    /// Its test metric: the result.
    pub(crate) test: f64,
}

/// Time and memory.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Cost {
    /// Of the whole run.
    pub(crate) seconds: f64,
    /// Evaluation not counted.
    pub(crate) train_rows_per_second: f64,
    /// 0 where the system does not say.
    pub(crate) peak_memory_bytes: u64,
}

impl Report {
    /// The report of a cell, if the cell is done.
    pub(crate) fn of(cell: &Cell) -> Option<Self> {
        let text = fs::read(path(cell)).ok()?;
        let report: Self = serde_json::from_slice(&text).ok()?;
        let identity = &cell.identity;
        let is_own = report.experiment == identity.experiment
            && report.data.files == identity.data
            && report.program.results == identity.results;
        is_own.then_some(report)
    }
}

/// Moves a report away that does not count: `fet` refuses to write over one.
pub(crate) fn move_away(cell: &Cell) -> std::io::Result<()> {
    let path = path(cell);
    if path.exists() { fs::rename(&path, path.with_extension("old.json")) } else { Ok(()) }
}

impl Metric {
    /// How it stands at the head of a column.
    pub(crate) fn title(&self) -> String {
        match self.name.as_str() {
            "accuracy" => "accuracy, %".to_string(),
            "rmse" => "RMSE".to_string(),
            other => other.to_string(),
        }
    }

    /// A value, or a spread of values, in the digits that the metric is shown with.
    pub(crate) fn show(&self, value: f64) -> String {
        match self.name.as_str() {
            "accuracy" => format!("{:.2}", 100.0 * value),
            _ => format!("{value:.3}"),
        }
    }

    /// A value with its metric, as in a sentence.
    pub(crate) fn phrase(&self, value: f64) -> String {
        match self.name.as_str() {
            "accuracy" => format!("accuracy {} %", self.show(value)),
            _ => format!("{} {}", self.title(), self.show(value)),
        }
    }

    /// A value in the unit that it is shown in.
    pub(crate) fn scaled(&self, value: f64) -> f64 {
        if self.name == "accuracy" { 100.0 * value } else { value }
    }

    /// The size of a difference, as in a sentence.
    pub(crate) fn amount(&self, difference: f64) -> String {
        let unit = if self.name == "accuracy" { "points".to_string() } else { self.title() };
        format!("{} {unit}", self.show(difference))
    }

    /// Whether `a` is better than `b`.
    pub(crate) fn is_better(&self, a: f64, b: f64) -> bool {
        match self.direction {
            Direction::Maximise => a > b,
            Direction::Minimise => a < b,
        }
    }
}

fn path(cell: &Cell) -> PathBuf {
    cell.folder.join("report.json")
}
