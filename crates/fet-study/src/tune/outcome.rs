//! Outcome of a search: the ranked candidates of each rung, and the best settings.

use std::path::Path;

use anyhow::{Result, ensure};
use fet_eval::{Direction, Metric};
use serde_json::{Value, json};

use super::super::output::{answer, shell_quoted, write};
use super::super::results::FinishedCell;
use super::super::statistics::mean;
use super::super::view::LogForm;
use super::super::write::table::{ReportTable, TableRow, mean_and_deviation};

/// Candidates that completed a rung.
#[derive(Debug)]
pub(super) struct Rung {
    /// Epochs of each candidate that started the rung.
    pub(super) epochs: Vec<u64>,
    /// Scores, best first.
    pub(super) scores: Vec<CandidateScore>,
}

/// Result of a candidate on the validation rows that compare candidates.
#[derive(Debug)]
pub(super) struct CandidateScore {
    /// Number of the candidate.
    pub(super) number: usize,
    drawn: Vec<String>,
    metric: Metric,
    values: Vec<f64>,
    /// Number of rows behind each value.
    rows: usize,
    seconds: f64,
}

/// Results of a whole search.
pub(super) struct TuneResults<'a> {
    /// Rungs, at least one.
    pub(super) rungs: &'a [Rung],
    /// Seeds of every candidate's runs.
    pub(super) seeds: &'a [u64],
    /// Number of folds; 0 without cross-validation.
    pub(super) folds: usize,
    /// Experiment file.
    pub(super) file: &'a Path,
    /// Changes of the profile, the command line and the variant.
    pub(super) own: &'a [String],
    /// Warning about the privacy loss of all runs of the search.
    pub(super) warning: Option<String>,
    /// Form of the output.
    pub(super) log: LogForm,
}

impl CandidateScore {
    /// Scores one candidate from its runs, one for each seed.
    pub(super) fn from_runs(number: usize, drawn: &[String], runs: &[&FinishedCell<'_>]) -> Self {
        Self {
            number,
            drawn: drawn.to_vec(),
            metric: runs[0].report.metric,
            values: runs.iter().map(|run| run.report.best.test).collect(),
            rows: runs[0].report.rows.test,
            seconds: runs.iter().map(|run| run.report.cost.seconds).sum(),
        }
    }

    fn title(&self) -> String {
        match self.number {
            0 => "as it is".to_string(),
            number => number.to_string(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "candidate": self.number, "set": self.drawn, "values": self.values, "mean": mean(&self.values), "rows": self.rows,
            "seconds": self.seconds,
        })
    }
}

impl Rung {
    /// Sorts the candidates, best first. Ties keep their order.
    pub(super) fn rank(&mut self) -> Result<()> {
        let Some(metric) = self.scores.first().map(|score| score.metric) else { return Ok(()) };
        let other = self.scores.iter().find(|score| score.metric != metric).map(|score| score.metric);
        ensure!(
            other.is_none(),
            "tune.space: all candidates must have the same metric, but some have {} and some {}",
            metric.title(),
            other.map_or_else(String::new, Metric::title)
        );
        let rows = self.scores.first().map(|score| score.rows);
        ensure!(
            self.scores.iter().all(|score| Some(score.rows) == rows),
            "tune.space: all candidates must be compared on the same rows, and the numbers of rows differ"
        );
        let sign = if metric.direction() == Direction::Maximise { -1.0 } else { 1.0 };
        self.scores.sort_by(|a, b| (sign * mean(&a.values)).total_cmp(&(sign * mean(&b.values))));
        Ok(())
    }

    fn table(&self) -> ReportTable {
        let metric = self.scores[0].metric;
        let header =
            vec!["candidate".to_string(), metric.title(), "seconds".to_string(), "settings".to_string()];
        let row = |score: &CandidateScore| TableRow {
            fields: vec![
                score.title(),
                mean_and_deviation(&score.values, |value| metric.show(value)),
                format!("{:.1}", score.seconds),
                if score.drawn.is_empty() { "-".to_string() } else { score.drawn.join(" ") },
            ],
            differs: false,
        };
        ReportTable { header, rows: self.scores.iter().map(row).collect() }
    }

    fn title(&self, number: usize, of: usize) -> String {
        let (least, most) = (self.epochs.iter().min().copied(), self.epochs.iter().max().copied());
        let epochs = match (least, most) {
            (Some(least), Some(most)) if least != most => format!("{least} to {most} epochs"),
            (Some(1), _) => "1 epoch".to_string(),
            (Some(all), _) => format!("{all} epochs"),
            (None, _) => String::new(),
        };
        let candidates = self.epochs.len();
        format!(
            "Rung {} of {of}: {candidates} candidate{}, {epochs}",
            number + 1,
            if candidates == 1 { "" } else { "s" }
        )
    }
}

/// Writes `tune.md` and `tune.json` into the folder, and prints the best settings.
pub(super) fn conclude(search: &TuneResults<'_>, folder: &Path) -> Result<()> {
    let Some(last) = search.rungs.last() else { return Ok(()) };
    let best = &last.scores[0];
    let as_it_is =
        |rung: &Rung| rung.scores.iter().find(|score| score.number == 0).map(|score| mean(&score.values));
    let mut markdown = format!("# Search over the settings of {}\n", search.file.display());
    let mut tables = Vec::new();
    for (number, rung) in search.rungs.iter().enumerate() {
        let title = rung.title(number, search.rungs.len());
        markdown.push_str(&format!("\n{title}\n\n{}", rung.table().markdown()));
        tables.push((title, rung.table()));
    }
    let metric = best.metric;
    let own = match as_it_is(last) {
        _ if best.number == 0 => "no drawn candidate is better than the unchanged experiment".to_string(),
        Some(value) => format!("the unchanged experiment has {}", metric.phrase(value)),
        None => "the unchanged experiment failed".to_string(),
    };
    let found = format!(
        "Best: {}, {} on {} validation rows{} that were not used to select an epoch; {own}. {}",
        if best.number == 0 {
            "the unchanged experiment".to_string()
        } else {
            format!("candidate {}", best.number)
        },
        metric.phrase(mean(&best.values)),
        best.rows,
        if search.folds > 0 { " of each fold" } else { "" },
        if search.folds > 0 {
            "Test rows of one fold are training and validation rows of the others, so a cross-validation with these settings is \
             optimistic."
        } else {
            "No test row was used."
        }
    );
    let sets: Vec<String> =
        search.own.iter().chain(&best.drawn).map(|set| format!(" --set {}", shell_quoted(set))).collect();
    let quoted: Vec<String> =
        best.drawn.iter().map(|set| toml::Value::from(set.as_str()).to_string()).collect();
    let settings = format!("set = [{}]", quoted.join(", "));
    let next = format!(
        "To evaluate it on the test rows:\n  fet run {}{} --seed {}",
        search.file.display(),
        sets.concat(),
        search.seeds[0]
    );
    markdown.push_str(&format!("\n{found}\n\n```toml\n{settings}\n```\n"));
    if let Some(warning) = &search.warning {
        markdown.push_str(&format!("\n{warning}\n"));
    }
    let json = json!({
        "file": search.file,
        "metric": metric,
        "seeds": search.seeds,
        "folds": search.folds,
        "base": search.own,
        "rungs": search.rungs.iter().map(|rung| json!({
            "epochs": rung.epochs,
            "candidates": rung.scores.iter().map(CandidateScore::json).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "best": best.json(),
    });
    write(&folder.join("tune.md"), &markdown)?;
    write(&folder.join("tune.json"), &format!("{json:#}\n"))?;
    match search.log {
        LogForm::Json => {
            answer(json!({"event": "end", "best": best.json(), "folder": folder, "warning": search.warning}));
        }
        LogForm::Human => {
            for (title, table) in &tables {
                answer(format!("{title}\n{}", table.text(false)));
            }
            answer(format!(
                "{found}\n  {settings}\n{next}\nResults in {}: tune.md, tune.json",
                folder.display()
            ));
            search.warning.iter().for_each(answer);
        }
    }
    Ok(())
}
