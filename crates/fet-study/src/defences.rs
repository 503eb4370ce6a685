//! Defences: groups variants that are the same run under different attacks, and computes the leakage and the
//! scores of each group.
//!
//! Two variants are the same defence if their settings are equal except for the attack. The base of the study
//! is the undefended run.
//!
//! The score is the defence capability score of VFLAIR (Zou et al., "VFLAIR: A Research Library and Benchmark
//! for Vertical Federated Learning", ICLR 2024). For one attack and one seed
//!
//! > DCS = 1 / (1 + √((1 − β) max(AP − AP\*, 0)² + β max(MP\* − MP, 0)²)), β = 0.5
//!
//! where AP is the performance of the attack and MP that of the main task. The T-DCS of a target is the mean
//! of DCS over the attacks on that target. C-DCS = Σ w T-DCS, where every target has the same weight w. Both
//! are computed for each seed and then averaged. T-DCS covers the seeds that every attack on its target has.
//! C-DCS is defined only if all attacks have the same seeds; otherwise it would cover fewer seeds than the
//! figures next to it.
//!
//! Neither score counts an attack that finds nothing in the undefended run: such an attack would raise the
//! score of every defence.
//!
//! AP is the leakage. AP\* is 0, the leakage of an attacker that does not use the run. VFLAIR's own program
//! uses 0 on the scale of the attack (accuracy, AUC) instead. That choice counts the success of
//! guessing against a defence, most of all with few classes. MP\* is the metric of the undefended run with the same seed. For
//! an error such as the RMSE, the relative loss (MP − MP\*) / MP\*, at most 1, replaces MP\* − MP, so that
//! both terms are between 0 and 1.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fet_eval::records::{AttackRecord, Attacker, Target};
use fet_eval::{Direction, Metric};
use serde_json::Value;

use super::cell::Cell;
use super::grid::StudyGrid;
use super::repetition::Repetition;
use super::row::Row;
use super::statistics::mean;

/// Weight β of the main task in the score.
pub(crate) const BETA: f64 = 0.5;

/// Largest mean leakage in the undefended run at which an attack counts as finding nothing.
pub(crate) const NOTHING: f64 = 0.05;

/// One value for each seed.
pub(crate) type BySeed = BTreeMap<Repetition, f64>;

/// The defences of a study and the attacks on them.
#[derive(Debug)]
pub(crate) struct Defences {
    /// Attacks that have a result, in the order of the study.
    pub(crate) attacks: Vec<AttackSummary>,
    /// Targets of the attacks, without duplicates.
    pub(crate) targets: Vec<Target>,
    /// Defences, in the order of the study.
    pub(crate) defences: Vec<Defence>,
    /// Index of the undefended run in `defences`; `None` if the selection does not contain it, or if no
    /// attack on it has a result.
    pub(crate) undefended: Option<usize>,
}

/// An attack.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AttackSummary {
    /// Kind of the attack, with the settings that distinguish attacks of this kind.
    pub(crate) name: String,
    /// Settings of the attack.
    pub(crate) settings: Value,
    /// Attacking side.
    pub(crate) attacker: Attacker,
    /// Target of the attack.
    pub(crate) target: Target,
    /// Number of the attacked or attacking secondary, from 1.
    pub(crate) party: usize,
    /// Name of the attack's first measure.
    pub(crate) measure: String,
    /// True if the attack is part of T-DCS and C-DCS: its leakage in the undefended run exceeds [`NOTHING`].
    pub(crate) counts: bool,
}

/// One defended run: the variants that are equal except for the attack.
#[derive(Debug)]
pub(crate) struct Defence {
    /// Name of the variant without the attack.
    pub(crate) name: String,
    /// Indices of its variants in the grid.
    pub(crate) variants: Vec<usize>,
    /// Test metric.
    pub(crate) tests: BySeed,
    /// Leakage under each attack.
    pub(crate) leakage: Vec<BySeed>,
    /// DCS under each attack.
    pub(crate) scores: Vec<BySeed>,
    /// T-DCS of each target; empty if no attack on the target counts.
    pub(crate) by_target: Vec<BySeed>,
    /// C-DCS; empty if the attacks that count do not all have the same seeds.
    pub(crate) comprehensive: BySeed,
}

/// Returns, for each variant, the variant that represents its run. Among all variants that differ only in the
/// attack, this is the one with the most results, and the first of these if there are several.
pub(crate) fn runs(cells: &[Cell], rows: &[Row<'_>]) -> Vec<usize> {
    let mut runs: Vec<usize> = (0..rows.len()).collect();
    if !cells.iter().any(|cell| cell.identity.experiment.get("attack").is_some()) {
        return runs;
    }
    // The key is that of a variant's first cell: every variant has the same first seed.
    let mut keys: Vec<Option<String>> = vec![None; rows.len()];
    for cell in cells {
        if let Some(key @ None) = keys.get_mut(cell.index) {
            let mut run = cell.identity.experiment.clone();
            if let Some(settings) = run.as_object_mut() {
                settings.remove("attack");
            }
            *key = Some(run.to_string());
        }
    }
    let mut best: HashMap<&str, usize> = HashMap::new();
    for (index, key) in keys.iter().enumerate() {
        let Some(key) = key else { continue };
        let one = best.entry(key).or_insert(index);
        if rows[index].tests.len() > rows[*one].tests.len() {
            *one = index;
        }
    }
    for (run, key) in runs.iter_mut().zip(&keys) {
        *run = key.as_deref().map_or(*run, |key| best[key]);
    }
    runs
}

impl Defences {
    /// Returns the defences of a study, or `None` if no attack has a result. Without a common `metric` the
    /// defences have no scores.
    pub(crate) fn from_rows(
        grid: &StudyGrid,
        rows: &[Row<'_>],
        runs: &[usize],
        metric: Option<Metric>,
    ) -> Option<Self> {
        let mut attacks = attacks(rows);
        if attacks.is_empty() {
            return None;
        }
        let mut targets: Vec<Target> = Vec::new();
        for attack in &attacks {
            if !targets.contains(&attack.target) {
                targets.push(attack.target);
            }
        }
        let mut order: Vec<usize> = Vec::new();
        for run in runs {
            if !order.contains(run) {
                order.push(*run);
            }
        }
        let mut defences: Vec<Defence> =
            order.iter().map(|&run| Defence::from_rows(run, rows, runs, &attacks)).collect();
        let base = grid.base().and_then(|base| runs.get(base));
        let undefended = base.and_then(|base| order.iter().position(|run| run == base));
        let undefended = undefended.filter(|&number| defences[number].is_attacked());
        if let (Some(metric), Some(undefended)) = (metric, undefended) {
            for (attack, leakage) in attacks.iter_mut().zip(&defences[undefended].leakage) {
                // An attack without a result on the undefended run counts: its leakage is unknown.
                attack.counts = leakage.is_empty() || mean(&values(leakage)) > NOTHING;
            }
            let without = defences[undefended].tests.clone();
            for defence in &mut defences {
                defence.score(metric, &without, &attacks, &targets);
            }
        }
        Some(Self { attacks, targets, defences, undefended })
    }

    /// Returns true if any defence has a score.
    pub(crate) fn scores(&self) -> bool {
        self.defences.iter().any(|defence| defence.scores.iter().any(|by_seed| !by_seed.is_empty()))
    }
}

impl Defence {
    /// Returns true if any attack on this defence has a result.
    pub(crate) fn is_attacked(&self) -> bool {
        self.leakage.iter().any(|by_seed| !by_seed.is_empty())
    }

    /// Returns the attacks that count and lack seeds that another such attack has, each with the missing
    /// seeds.
    pub(crate) fn lacking<'a>(
        &self,
        attacks: &'a [AttackSummary],
    ) -> Vec<(&'a AttackSummary, Vec<Repetition>)> {
        let counted = || attacks.iter().zip(&self.leakage).filter(|(attack, _)| attack.counts);
        let all: BTreeSet<Repetition> = counted().flat_map(|(_, leakage)| leakage.keys().copied()).collect();
        let lacks =
            |leakage: &BySeed| all.iter().copied().filter(|seed| !leakage.contains_key(seed)).collect();
        let each = counted().map(|(attack, leakage)| (attack, lacks(leakage)));
        each.filter(|(_, seeds): &(_, Vec<Repetition>)| !seeds.is_empty()).collect()
    }

    fn from_rows(run: usize, rows: &[Row<'_>], runs: &[usize], attacks: &[AttackSummary]) -> Self {
        let variants: Vec<usize> = (0..rows.len()).filter(|&row| runs[row] == run).collect();
        let results = || variants.iter().flat_map(|&row| &rows[row].results);
        // Cells with the same seed are the same run, so the first of these cells gives the metric.
        let mut tests = BySeed::new();
        for result in results() {
            tests.entry(result.cell.repetition).or_insert(result.report.best.test);
        }
        let leakage = |attack: &AttackSummary| -> BySeed {
            let own = results().filter(|result| result.report.experiment["attack"] == attack.settings);
            own.filter_map(|result| Some((result.cell.repetition, result.report.attack.as_ref()?.leakage())))
                .collect()
        };
        Self {
            name: rows[run].variant.run(),
            leakage: attacks.iter().map(leakage).collect(),
            scores: vec![BySeed::new(); attacks.len()],
            by_target: Vec::new(),
            comprehensive: BySeed::new(),
            variants,
            tests,
        }
    }

    fn score(&mut self, metric: Metric, undefended: &BySeed, attacks: &[AttackSummary], targets: &[Target]) {
        let of = |leakage: &BySeed| -> BySeed {
            let seeds = leakage.iter().filter_map(|(seed, leakage)| {
                let loss = loss(metric, *self.tests.get(seed)?, *undefended.get(seed)?);
                Some((*seed, score(*leakage, loss)))
            });
            seeds.collect()
        };
        self.scores = self.leakage.iter().map(of).collect();
        let is_on = |attack: &AttackSummary, target: &Target| attack.counts && attack.target == *target;
        let of = |target: &Target| {
            let own = attacks.iter().zip(&self.scores).filter(|(attack, _)| is_on(attack, target));
            together(own.map(|(_, scores)| scores))
        };
        self.by_target = targets.iter().map(of).collect();
        if self.lacking(attacks).is_empty() {
            let counted = targets.iter().map(|target| attacks.iter().any(|attack| is_on(attack, target)));
            let counted = counted.zip(&self.by_target).filter(|(is_counted, _)| *is_counted);
            self.comprehensive = together(counted.map(|(_, scores)| scores));
        }
    }
}

/// Computes DCS from a leakage and a loss of the main task, both between 0 and 1.
pub(crate) fn score(leakage: f64, loss: f64) -> f64 {
    1.0 / (1.0 + ((1.0 - BETA) * leakage.powi(2) + BETA * loss.powi(2)).sqrt())
}

/// Returns the loss of the main task compared with the undefended run, at most 1. For an accuracy this is the
/// difference, for an error its relative increase. An improvement gives 0.
fn loss(metric: Metric, own: f64, undefended: f64) -> f64 {
    if !metric.direction().improves(undefended, own) {
        return 0.0;
    }
    match metric.direction() {
        Direction::Maximise => (undefended - own).min(1.0),
        Direction::Minimise => ((own - undefended) / undefended).min(1.0),
    }
}

/// Returns the values without their seeds.
pub(crate) fn values(by_seed: &BySeed) -> Vec<f64> {
    by_seed.values().copied().collect()
}

/// Returns the mean over all parts, for each seed that every part has.
fn together<'a>(parts: impl Iterator<Item = &'a BySeed>) -> BySeed {
    let parts: Vec<&BySeed> = parts.collect();
    let Some(first) = parts.first() else { return BySeed::new() };
    let of = |seed: &Repetition| {
        let values: Option<Vec<f64>> = parts.iter().map(|part| part.get(seed).copied()).collect();
        Some((*seed, mean(&values?)))
    };
    first.keys().filter_map(of).collect()
}

/// Returns the attacks that have a result, without duplicates.
fn attacks(rows: &[Row<'_>]) -> Vec<AttackSummary> {
    let mut found: Vec<(&Value, &AttackRecord)> = Vec::new();
    for result in rows.iter().flat_map(|row| &row.results) {
        if let Some(record) = &result.report.attack {
            let settings = &result.report.experiment["attack"];
            if !found.iter().any(|(known, _)| *known == settings) {
                found.push((settings, record));
            }
        }
    }
    let attack = |&(settings, record): &(&Value, &AttackRecord)| AttackSummary {
        name: name(settings, record, &found),
        settings: settings.clone(),
        attacker: record.attacker,
        target: record.target,
        party: record.party,
        measure: record.measures.first().map_or_else(String::new, |measure| measure.name.clone()),
        counts: true,
    };
    found.iter().map(attack).collect()
}

/// Returns the kind of an attack, followed by each setting in which another attack of this kind differs.
fn name(settings: &Value, record: &AttackRecord, all: &[(&Value, &AttackRecord)]) -> String {
    let others = || all.iter().filter(|(_, other)| other.attack == record.attack);
    let fields = settings.as_object().into_iter().flatten();
    let differing = fields.filter(|(key, value)| others().any(|(other, _)| other[key.as_str()] != **value));
    differing.fold(record.attack.clone(), |name, (key, value)| {
        format!("{name} · {key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_string))
    })
}

#[cfg(test)]
#[path = "defences/tests.rs"]
pub(crate) mod tests;
