//! Formats an explanation as text and as a picture.

use std::fmt::Write;

use fet_chart::{Mark, Panel, Picture, Series, Size};
use fet_eval::Metric;
use fet_eval::importance::Importance;

use super::explanation::{Anchors, Explanation, FILE, PAIRS, PartyReliance};

/// Maximum number of printed columns.
const PRINTED: usize = 20;
/// Suffix for the row of keys.
const UNCHANGED: &str = ", links unchanged";
/// Maximum number of drawn columns.
const DRAWN: usize = 15;

/// The meaning of reliance.
const RELIANCE: &str = "Reliance is how much this model leans on a party, not what federating with it adds, because a model trained \
without the party would use other columns instead.";
/// The ways to measure the gain of federating.
const ADDS: &str = "To measure what federating adds, train without the party: `fet study`, or a run of the \
primary alone and `--control RUN`.";

/// Share of a party's reliance below which the loss of a shuffle is taken for nothing.
const NOTHING: f64 = 0.05;

/// One of the columns or keys that were shuffled.
struct Shuffled<'a> {
    party: &'a str,
    name: String,
    importance: &'a Importance,
}

impl Explanation {
    /// Returns columns and keys, the most important first.
    fn shuffled(&self) -> Vec<Shuffled<'_>> {
        let columns = self.columns.iter().map(|column| Shuffled {
            party: &column.party,
            name: format!("{}: {}", column.party, column.column),
            importance: &column.importance,
        });
        let keys = self.keys.iter().map(|keys| Shuffled {
            party: &keys.party,
            name: format!("{}: all keys{UNCHANGED}", keys.party),
            importance: &keys.importance,
        });
        let mut all: Vec<Shuffled<'_>> = columns.chain(keys).collect();
        all.sort_by(|a, b| b.importance.mean.total_cmp(&a.importance.mean));
        all
    }

    /// The parties that the model relies on, though no shuffle of their columns or keys costs more than noise.
    fn relied_on_for_presence(&self) -> Vec<&str> {
        let Some(PartyReliance { names, reliance, .. }) = &self.parties else { return Vec::new() };
        let all = self.shuffled();
        let is_by_presence = |(name, lost): &(&String, &f64)| {
            let own = all.iter().filter(|one| one.party == name.as_str());
            let own: Vec<&Importance> = own.map(|one| one.importance).collect();
            is_by_presence(**lost, &own)
        };
        names.iter().zip(reliance).filter(is_by_presence).map(|(name, _)| name.as_str()).collect()
    }

    /// The number of a party in charts: the primary is 0.
    fn number(&self, party: &str) -> usize {
        let names = self.parties.iter().flat_map(|parties| &parties.names);
        names.into_iter().position(|name| name == party).map_or(0, |place| place + 1)
    }

    /// Returns the scores to compare losses with, by name.
    fn anchors(&self) -> Vec<(String, Option<f64>)> {
        let Anchors { with_all, without_parties, training_mean, control } = &self.anchors;
        let mut all = vec![("this model with everything".to_string(), Some(*with_all))];
        if let Some(PartyReliance { names, without, .. }) = &self.parties {
            let each = names.iter().zip(without);
            all.extend(each.map(|(name, score)| (format!("this model without {name}"), Some(*score))));
            if names.len() > 1 {
                all.push(("this model without any other party".to_string(), *without_parties));
            }
        }
        all.push(("the mean of the training labels".to_string(), *training_mean));
        if let Some(control) = control {
            let name = format!("{}, trained without other parties ({})", control.run, control.method);
            all.push((name, Some(control.score)));
        }
        all
    }
}

/// Returns true for a party of this reliance, if none of the shuffles of its columns and keys costs more than noise.
fn is_by_presence(lost: f64, shuffles: &[&Importance]) -> bool {
    let is_noise = |Importance { mean, deviation, .. }: &&Importance| {
        lost > 2.0 * deviation && *mean <= (2.0 * deviation).max(NOTHING * lost)
    };
    lost > 0.0 && !shuffles.is_empty() && shuffles.iter().all(is_noise)
}

/// For people.
pub(super) fn text(found: &Explanation) -> String {
    let Explanation { metric, rows, repeats, anchors, parties, .. } = found;
    let mut out =
        format!("{} on {rows} test rows\n\n{} of\n", metric.phrase(anchors.with_all), metric.title());
    let scores = found.anchors();
    let widest = |names: &mut dyn Iterator<Item = usize>| names.max().unwrap_or(0);
    let width = widest(&mut scores.iter().map(|(name, _)| name.chars().count()));
    for (name, score) in &scores {
        let score = score.map_or_else(|| "undefined".to_string(), |score| metric.show(score));
        let _ = writeln!(out, "  {name:<width$}  {score:>10}");
    }
    if let Some(parties) = parties {
        reliance(&mut out, *metric, parties, anchors);
    }
    let _ = writeln!(
        out,
        "\nPermutation loss: the loss in {} when one column is shuffled, or all keys that a party's model sees ({})",
        metric.title(),
        if *repeats > 1 {
            format!("mean and standard deviation of {repeats} shuffles")
        } else {
            "one shuffle".to_string()
        }
    );
    let all = found.shuffled();
    let shown = || all.iter().take(PRINTED);
    let width = widest(&mut shown().map(|one| one.name.chars().count())).min(60);
    for Shuffled { name, importance, .. } in shown() {
        // The standard deviation needs several shuffles.
        let deviation =
            if *repeats > 1 { format!(" ± {}", metric.show(importance.deviation)) } else { String::new() };
        let _ = writeln!(out, "  {name:<width$}  {:>10}{deviation}", metric.show(importance.mean));
    }
    if all.len() > PRINTED {
        let _ = writeln!(out, "  ... and {} more in {FILE}", all.len() - PRINTED);
    }
    for party in found.relied_on_for_presence() {
        let _ = writeln!(
            out,
            "\nThis model relies on the presence of {party}, not on its values: the loss from shuffling any column or key of {party} is within the noise."
        );
    }
    out
}

fn reliance(out: &mut String, metric: Metric, parties: &PartyReliance, anchors: &Anchors) {
    let PartyReliance { names, reliance, shapley, .. } = parties;
    let _ = writeln!(
        out,
        "\nReliance on each party: the loss in {} of this model without the party, and its Shapley value over all \
         orders of leaving",
        metric.title()
    );
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for ((name, lost), value) in names.iter().zip(reliance).zip(&shapley.values) {
        let _ = writeln!(out, "  {name:<width$}  {:>10}  {:>10}", metric.show(*lost), metric.show(*value));
    }
    if let Some(errors) = &shapley.errors {
        let largest = errors.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "  values sampled from {} orders; standard error at most {}",
            2 * PAIRS,
            metric.show(largest)
        );
    }
    let _ = writeln!(out, "{RELIANCE}");
    let _ = match &anchors.control {
        None => writeln!(out, "{ADDS}"),
        Some(control) => {
            let added = metric.direction().gain(anchors.with_all, control.score);
            let word = if added < 0.0 { "worse" } else { "better" };
            writeln!(
                out,
                "Effect of federating on these rows, with one seed: {} {word} than {}.",
                metric.amount(added.abs()),
                control.run
            )
        }
    };
}

/// One chart of an explanation.
pub(crate) struct RelianceChart {
    pub(crate) title: String,
    /// Title of the axis.
    pub(crate) x: String,
    pub(crate) series: Vec<Series>,
}

impl Explanation {
    /// Returns the Shapley values of parties, if there are any, and the permutation losses of columns.
    pub(crate) fn charts(&self) -> Vec<RelianceChart> {
        let metric = self.metric;
        let bar = |number: usize, name: String, mean: f64, half: Option<f64>| Series {
            number,
            marks: vec![Mark {
                mean: metric.scaled(mean),
                half_width: half.map(|half| metric.scaled(half)),
                title: format!("{name}: {}", metric.show(mean)),
                ..Mark::default()
            }],
            name,
            ..Series::default()
        };
        let mut charts = Vec::new();
        if let Some(PartyReliance { names, shapley, .. }) = &self.parties {
            let error = |at: usize| shapley.errors.as_ref().map(|errors| errors[at]);
            let values = names.iter().zip(&shapley.values).enumerate();
            charts.push(RelianceChart {
                title: "Reliance on each party".to_string(),
                x: format!("Shapley value: {} that this model loses without the party", metric.title()),
                series: values
                    .map(|(at, (name, value))| bar(at + 1, name.clone(), *value, error(at)))
                    .collect(),
            });
        }
        let of_column = |one: Shuffled<'_>| {
            // The chart has less room for names than a line of text.
            let name = one.name.trim_end_matches(UNCHANGED).to_string();
            bar(self.number(one.party), name, one.importance.mean, Some(one.importance.deviation))
        };
        charts.push(RelianceChart {
            title: "Reliance on each column".to_string(),
            x: format!("permutation loss: {} that this model loses when it is shuffled", metric.title()),
            series: self.shuffled().into_iter().take(DRAWN).map(of_column).collect(),
        });
        charts
    }

    /// Returns the names of the primary and of the secondaries, with their numbers in charts.
    pub(crate) fn legend(&self) -> Vec<(usize, String)> {
        let primary = self.keys.first().map_or("primary", |keys| keys.party.as_str());
        let others = self.parties.iter().flat_map(|parties| &parties.names);
        let names = std::iter::once(primary).chain(others.map(String::as_str));
        names.map(String::from).enumerate().collect()
    }

    /// Returns the scores that losses are compared with, and the meaning of the charts.
    pub(crate) fn caption(&self) -> String {
        let scores = self.anchors().into_iter();
        let scores = scores
            .filter_map(|(name, score)| Some(format!("{name} {}", self.metric.show(score?))))
            .collect::<Vec<_>>();
        format!(
            "{} on {} test rows: {}.{} Bars: standard deviation over shuffles{}.",
            self.metric.title(),
            self.rows,
            scores.join("; "),
            if self.parties.is_some() { format!(" {RELIANCE}") } else { String::new() },
            if self.parties.as_ref().is_some_and(|parties| parties.shapley.errors.is_some()) {
                ", standard error of sampled Shapley values"
            } else {
                ""
            }
        )
    }
}

/// Draws the Shapley values of parties, and below them the permutation losses of columns on a separate scale.
pub(super) fn picture(found: &Explanation) -> String {
    let panel = |RelianceChart { title, x, series }: RelianceChart| {
        // A row of dots takes 34 units, the scale below the rows 58.
        let size = Size { width: 940.0, height: 34.0 * series.len() as f64 + 58.0, names: 320.0 };
        let chart = fet_chart::dots(size, &title, &x, &series, Some(0.0));
        Panel { title, size, chart }
    };
    let score = found.metric.show(found.anchors.with_all);
    Picture {
        title: format!("Reliance of a model on parties and columns: {} {score}", found.metric),
        panels: found.charts().into_iter().map(panel).collect(),
        columns: 1,
        legend: found.legend(),
        caption: found.caption(),
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_reliance_on_presence_from_reliance_on_values() {
        let check = |lost: f64, shuffles: &[(f64, f64)], expected: bool| {
            let all: Vec<Importance> = shuffles
                .iter()
                .map(|&(mean, deviation)| Importance { mean, deviation, repeats: vec![mean] })
                .collect();
            assert_eq!(
                is_by_presence(lost, &all.iter().collect::<Vec<_>>()),
                expected,
                "{lost} {shuffles:?}"
            );
        };
        check(0.2, &[(0.001, 0.002), (-0.003, 0.004)], true);
        check(0.2, &[(0.001, 0.002), (0.05, 0.004)], false);
        check(0.2, &[(0.001, 0.2)], false);
        check(0.0, &[(0.0, 0.0)], false);
        check(-0.1, &[(0.0, 0.0)], false);
        check(0.2, &[], false);
    }
}
