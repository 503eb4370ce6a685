//! Checks of the best method: random links, each party left out, and fewer labels.

use fet_eval::Metric;
use fet_study::{CollectVariant, CollectedCell};
use serde::Serialize;

use super::choice::{Choice, figures, of_variant};
use super::compare::gain;
use super::plan::ExperimentFacts;
use super::verdict::{Figures, Gain};

/// Shares of the training rows on the learning curve, besides all.
const SHARES: [f64; 2] = [0.25, 0.5];

/// Results of the checks.
#[derive(Debug, Serialize)]
pub(super) struct Checks {
    /// Gain of the best method over itself with random links.
    pub(super) over_random: Option<Gain>,
    /// Gain of the best method over itself without one party, for each party.
    pub(super) parties: Vec<PartyResult>,
    /// Figures with fewer labels, from the fewest to all.
    pub(super) labels: Vec<LabelResult>,
}

/// Contribution of one party.
#[derive(Debug, Serialize)]
pub(super) struct PartyResult {
    /// Name of the party.
    pub(super) name: String,
    /// Gain of the best method with all parties over itself without this party.
    pub(super) gain: Gain,
}

/// Figures with a share of the training labels.
#[derive(Debug, Serialize)]
pub(super) struct LabelResult {
    /// Share of the training rows.
    pub(super) share: f64,
    /// Number of training rows.
    pub(super) rows: usize,
    /// Figures of the best method alone.
    pub(super) alone: Figures,
    /// Figures of the best method with the other parties.
    pub(super) with: Figures,
    /// Gain from the other parties.
    pub(super) gain: Gain,
}

/// Returns the variant of the best method with random links.
pub(super) fn random_links(facts: &ExperimentFacts, choice: &Choice<'_>) -> Vec<CollectVariant> {
    let best = choice.with.1;
    vec![variant(random_name(best.name), &[&best.with, &facts.random_links()])]
}

/// Returns the variants of all checks.
pub(super) fn variants(facts: &ExperimentFacts, choice: &Choice<'_>) -> Vec<CollectVariant> {
    let (own, best) = (choice.alone.1, choice.with.1);
    let mut all = random_links(facts, choice);
    for (at, party) in facts.others.iter().enumerate() {
        if let Some(without) = facts.without(at) {
            all.push(variant(without_name(best.name, party), &[&best.with, &without]));
        }
    }
    for share in SHARES {
        let fewer = vec![format!("split.training_share={share}")];
        all.push(variant(share_name(own.control, share), &[&own.alone, &fewer]));
        all.push(variant(share_name(best.name, share), &[&best.with, &fewer]));
    }
    all
}

fn variant(name: String, sets: &[&Vec<String>]) -> CollectVariant {
    CollectVariant { name, sets: sets.iter().copied().flatten().cloned().collect(), control: None }
}

fn random_name(method: &str) -> String {
    format!("{method}, random links")
}

fn without_name(method: &str, party: &str) -> String {
    format!("{method}, without {party}")
}

fn share_name(method: &str, share: f64) -> String {
    format!("{method}, {:.0} % of the labels", 100.0 * share)
}

impl Checks {
    /// Compares the checked variants with the best methods among `cells`.
    pub(super) fn new(
        facts: &ExperimentFacts,
        choice: &Choice<'_>,
        cells: &[CollectedCell],
        checked: &[CollectedCell],
    ) -> anyhow::Result<Self> {
        let (own, best, metric) = (choice.alone.1, choice.with.1, choice.metric);
        let all = of_variant(cells, best.name);
        let over = |name: &str| gain_over(&all, &of_variant(checked, name), metric);
        let mut parties = Vec::new();
        for name in &facts.others {
            if let Some(gain) = over(&without_name(best.name, name))? {
                parties.push(PartyResult { name: name.clone(), gain });
            }
        }
        let mut labels = Vec::new();
        for share in SHARES.into_iter().chain([1.0]) {
            let (known, names) = match share == 1.0 {
                true => (cells, (best.name.to_string(), own.control.to_string())),
                false => (checked, (share_name(best.name, share), share_name(own.control, share))),
            };
            let (with, without) = (of_variant(known, &names.0), of_variant(known, &names.1));
            if let (Some(first), Some(gain)) = (with.first(), gain_over(&with, &without, metric)?) {
                let rows = first.report.rows.train;
                let (with, alone) = (figures(&with), figures(&without));
                labels.push(LabelResult { share, rows, alone, with, gain });
            }
        }
        // A curve needs several points.
        if labels.len() < 2 {
            labels.clear();
        }
        Ok(Self { over_random: over(&random_name(best.name))?, parties, labels })
    }
}

/// Returns the gain of `with` over `without`, or `None` if one of them was not run.
fn gain_over(
    with: &[&CollectedCell],
    without: &[&CollectedCell],
    metric: Metric,
) -> anyhow::Result<Option<Gain>> {
    if with.is_empty() || without.is_empty() { Ok(None) } else { gain(with, without, metric).map(Some) }
}
