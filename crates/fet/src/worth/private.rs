//! `fet worth` for an experiment with `[release]`: what private releases cost and bring, at one or several ε.
//!
//! The command trains each method on the primary's own columns, with the columns of the releases, and with columns of
//! noise alone. The validation rows choose the best methods, and the test rows measure the gain of the releases over the
//! best method alone and over the noise.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use fet_eval::Metric;
use fet_eval::records::{ReleaseRecord, Rows};
use fet_io::input::input;
use fet_study::{CollectVariant, CollectedCell};
use serde::Serialize;

use super::choice::{figures, of_variant};
use super::compare::gain;
use super::plan::{ExperimentFacts, MethodPair};
use super::show;
use super::verdict::{Figures, Gain, Verdict, error, verdict};
use super::{ANSWER, METHODS, Runner, WorthArguments, splits};
use fet_study::output::shell_quoted;

/// The answer: the content of `worth.json`.
#[derive(Debug, Serialize)]
struct PrivateWorth {
    metric: Metric,
    /// Number of labelled rows in each part.
    label_rows: Rows,
    /// Number of splits.
    splits: usize,
    /// Best method on the primary's own columns.
    alone: Best,
    /// Result at each ε, ascending.
    levels: Vec<Level>,
    /// Number of releases of each table that the command made.
    releases: usize,
}

/// A method that the validation rows chose.
#[derive(Debug, Serialize)]
struct Best {
    /// Name of the method.
    name: String,
    figures: Figures,
    /// Settings, each as `path=value`.
    sets: Vec<String>,
}

/// Result of releases at one ε.
#[derive(Debug, Serialize)]
struct Level {
    epsilon: f64,
    verdict: Verdict,
    best: Best,
    /// Gain over the best method alone.
    gain: Gain,
    /// Gain of the method over itself with noise in place of the releases.
    over_noise: Gain,
    /// Gain of the method with noise over the best method alone.
    noise: Gain,
    /// Cost of the releases in one run.
    cost: ReleaseRecord,
}

/// A method that can use the columns of a release.
struct Own {
    name: String,
    sets: Vec<String>,
}

impl Own {
    fn alone(&self) -> CollectVariant {
        let leave_out = vec!["release.kind=none".to_string()];
        CollectVariant {
            name: self.name.clone(),
            sets: [self.sets.clone(), leave_out].concat(),
            control: None,
        }
    }

    /// Returns the settings with releases at this ε.
    fn released(&self, epsilon: f64) -> Vec<String> {
        [self.sets.clone(), vec![format!("release.epsilon={epsilon:?}")]].concat()
    }

    fn name_at(&self, epsilon: f64) -> String {
        format!("{}, ε = {epsilon}", self.name)
    }

    fn noise_at(&self, epsilon: f64) -> String {
        format!("{}, noise alone, ε = {epsilon}", self.name)
    }

    /// Returns the variants that compare the releases with noise. They have no gate: the comparison is about the releases, and the
    /// gate of one run would hide most of a difference.
    fn variants(&self, epsilon: f64) -> [CollectVariant; 2] {
        let open = vec!["train.gate=false".to_string()];
        let noise = vec!["release.noise_only=true".to_string()];
        [
            CollectVariant {
                name: self.name_at(epsilon),
                sets: [self.released(epsilon), open.clone()].concat(),
                control: Some(self.noise_at(epsilon)),
            },
            CollectVariant {
                name: self.noise_at(epsilon),
                sets: [self.released(epsilon), open, noise].concat(),
                control: None,
            },
        ]
    }
}

/// Returns the methods on the primary's own columns that take the columns of a release.
fn own_methods(facts: &ExperimentFacts, quick: bool) -> Vec<Own> {
    let mut all: Vec<Own> = Vec::new();
    for MethodPair { control, alone, .. } in super::plan::methods(facts, quick) {
        let name = control.strip_suffix(", alone").unwrap_or(control).to_string();
        let kind = |kind: &str| alone.iter().any(|set| set == &format!("method.kind={kind}"));
        let is_known = all.iter().any(|known| known.name == name);
        // A network with trees takes as long as both, and `quick` has both.
        let is_slow = quick && kind("with-trees");
        if !is_known && !is_slow && !kind("fet-trees") && !kind("fet-alone") {
            all.push(Own { name, sets: alone });
        }
    }
    all
}

/// Runs the command; `epsilon` is that of the experiment.
pub(super) fn worth(
    arguments: &WorthArguments,
    facts: &ExperimentFacts,
    epsilon: f64,
    mut runner: Runner<'_>,
) -> anyhow::Result<ExitCode> {
    let mut epsilons = if arguments.epsilon.is_empty() { vec![epsilon] } else { arguments.epsilon.clone() };
    if let Some(wrong) = epsilons.iter().find(|epsilon| !(**epsilon > 0.0 && epsilon.is_finite())) {
        return Err(input(format!("--epsilon: must be above 0; it is {wrong}")));
    }
    epsilons.sort_by(f64::total_cmp);
    epsilons.dedup();
    let methods = own_methods(facts, arguments.quick);
    let variants: Vec<CollectVariant> = methods
        .iter()
        .flat_map(|own| {
            let released = epsilons.iter().flat_map(|&epsilon| own.variants(epsilon));
            std::iter::once(own.alone()).chain(released).collect::<Vec<_>>()
        })
        .collect();
    // The first split shows the number of labelled rows.
    let Some(first) = runner.run(METHODS, &variants)? else { return Ok(ExitCode::from(130)) };
    let rows = first.first().context("the study lacks runs")?.report.rows;
    runner.seeds = (0..splits(rows.train + rows.validation + rows.test, arguments.quick)).collect();
    let Some(cells) = runner.run(METHODS, &variants)? else { return Ok(ExitCode::from(130)) };
    let answer = answer(&methods, &epsilons, &cells)?;
    let folder = &arguments.out;
    let json = serde_json::to_string_pretty(&answer).context("the answer is plain data")?;
    fet_io::write(&folder.join(ANSWER), format!("{json}\n").as_bytes())?;
    let text = match arguments.json {
        true => format!("{json}\n"),
        false => {
            let next = next(&answer, &shell_quoted(&runner.base.to_string_lossy()));
            let studies = folder.join(METHODS);
            format!("{}\nNext: {next}\nThe runs are in {}.\n", text(&answer), studies.display())
        }
    };
    fet_io::answer(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn answer(methods: &[Own], epsilons: &[f64], cells: &[CollectedCell]) -> anyhow::Result<PrivateWorth> {
    let first = cells.first().context("the study lacks runs")?;
    let metric = first.report.metric;
    let best = |name: &dyn Fn(&Own) -> String| -> anyhow::Result<(&Own, Figures)> {
        let found = methods.iter().map(|own| (own, figures(&of_variant(cells, &name(own)))));
        found
            .filter(|(_, figures)| figures.validation.is_finite())
            .reduce(|best, new| match metric.direction().improves(new.1.validation, best.1.validation) {
                true => new,
                false => best,
            })
            .context("no run has a finite validation figure")
    };
    let (own, own_figures) = best(&|own| own.name.clone())?;
    let alone = of_variant(cells, &own.name);
    let level = |&epsilon: &f64| {
        let (method, figures) = best(&|own| own.name_at(epsilon))?;
        let released = of_variant(cells, &method.name_at(epsilon));
        let noise = of_variant(cells, &method.noise_at(epsilon));
        let found = gain(&released, &alone, metric)?;
        let over_noise = gain(&released, &noise, metric)?;
        let release = |cell: &&CollectedCell| cell.report.release.clone();
        Ok(Level {
            epsilon,
            verdict: verdict(&found, Some(&over_noise), error(metric, own_figures.test)),
            best: Best { name: method.name.clone(), figures, sets: method.released(epsilon) },
            gain: found,
            over_noise,
            noise: gain(&noise, &alone, metric)?,
            cost: released.first().and_then(release).context("a run lacks its release")?,
        })
    };
    let is_release =
        |cell: &&CollectedCell| cell.report.release.as_ref().is_some_and(|release| !release.noise_only);
    let mut levels: Vec<Level> = epsilons.iter().map(level).collect::<anyhow::Result<_>>()?;
    in_sequence(&mut levels);
    Ok(PrivateWorth {
        metric,
        label_rows: first.report.rows,
        splits: alone.len(),
        alone: Best { name: own.name.clone(), figures: own_figures, sets: own.alone().sets },
        levels,
        releases: cells.iter().filter(is_release).count(),
    })
}

/// Keeps a "yes" only if each larger ε has one, too. Tests in a fixed sequence need no correction for their number.
fn in_sequence(levels: &mut [Level]) {
    let mut all_larger = true;
    for level in levels.iter_mut().rev() {
        if level.verdict == Verdict::Yes && !all_larger {
            level.verdict = Verdict::NotShown;
        }
        all_larger = level.verdict == Verdict::Yes;
    }
}

/// Returns the answer as text.
fn text(worth: &PrivateWorth) -> String {
    let PrivateWorth { metric, alone, levels, splits, .. } = worth;
    let unit = if metric.unit() == fet_eval::Unit::Share { " %" } else { "" };
    let mut text = format!(
        "{} with the primary alone: {}{unit} ({}), over {splits} splits.\n",
        metric.label(),
        metric.show(alone.figures.test),
        alone.name
    );
    for level in levels {
        let Level { epsilon, best, .. } = level;
        let title = match level.verdict {
            Verdict::Yes => "Yes: the releases improve the prediction.",
            Verdict::No => "No: do not federate at this ε.",
            Verdict::NotShown => {
                "Not shown: do not federate at this ε, unless more labelled rows show a gain."
            }
        };
        let _ = writeln!(text, "\nε = {epsilon}. {title}");
        let _ = writeln!(
            text,
            "  with the releases      {:>10}   gain {}   ({})",
            metric.show(best.figures.test),
            show::gain(*metric, &level.gain),
            best.name
        );
        let _ = writeln!(
            text,
            "  noise in their place                gain {}",
            show::gain(*metric, &level.noise)
        );
        let _ = writeln!(
            text,
            "  releases over noise                 gain {}",
            show::gain(*metric, &level.over_noise)
        );
        for sentence in level.cost.sentences() {
            // These runs have public noise, as the last paragraph says.
            if !sentence.starts_with("the noise follows") {
                let _ = writeln!(text, "  {sentence}");
            }
        }
        if !level.cost.of_primary.is_empty() {
            let _ = writeln!(text, "  {}", level.cost.of_primary);
        }
    }
    let _ = writeln!(
        text,
        "\nIntervals: 95 %, over test rows and splits. Gains are over the best method alone; a verdict of yes also needs a gain over \
         the noise, and a yes at each larger ε.\nThis command made {} releases with noise that follows from public seeds: their results are for people who \
         may see the tables, or are of stand-ins for them.",
        worth.releases
    );
    text
}

/// Returns the advice for the user's next step.
fn next(worth: &PrivateWorth, file: &str) -> String {
    let run = |best: &Best, more: &[String]| {
        let sets = best.sets.iter().chain(more);
        let sets: Vec<String> = sets.map(|set| format!("--set {}", shell_quoted(set))).collect();
        format!("`fet run {file} {}`", sets.join(" "))
    };
    match worth.levels.iter().find(|level| level.verdict == Verdict::Yes) {
        Some(level) => format!(
            "{} trains {} with releases at ε = {}, the smallest ε with a gain. Its noise is secret, and \
             it makes the releases once.",
            run(&level.best, &["train.randomness=own".to_string()]),
            level.best.name,
            level.epsilon
        ),
        None => format!(
            "{} trains the best method of the primary alone ({}).",
            run(&worth.alone, &[]),
            worth.alone.name
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_eval::records::{Randomness, TableRelation};

    fn level(epsilon: f64, verdict: Verdict) -> Level {
        let figures = Figures { validation: 1.0, test: 1.0, seconds: 1.0 };
        let gain = Gain { mean: 0.5, lower: 0.1, upper: 0.9, rows: 200 };
        Level {
            epsilon,
            verdict,
            best: Best {
                name: "boosted trees".into(),
                figures,
                sets: vec![format!("release.epsilon={epsilon}")],
            },
            gain,
            over_noise: gain,
            noise: gain,
            cost: ReleaseRecord {
                kind: "surface".into(),
                noise_only: false,
                delta: 1e-5,
                neighbouring: TableRelation::Record,
                randomness: Randomness::Experiment,
                parties: Vec::new(),
                epsilon_of_person: None,
                epsilon_by_colluding: vec![epsilon],
                gate: None,
                of_primary: String::new(),
                statement: String::new(),
                assumptions: Vec::new(),
            },
        }
    }

    fn worth(levels: Vec<Level>) -> PrivateWorth {
        let figures = Figures { validation: 2.0, test: 2.0, seconds: 1.0 };
        PrivateWorth {
            metric: Metric::Rmse,
            label_rows: Rows { train: 70, validation: 10, test: 20 },
            splits: 3,
            alone: Best { name: "linear model".into(), figures, sets: vec!["release.kind=none".into()] },
            levels,
            releases: 6,
        }
    }

    #[test]
    fn advises_the_smallest_epsilon_with_a_gain_and_otherwise_the_primary_alone() {
        let found =
            worth(vec![level(1.0, Verdict::NotShown), level(3.0, Verdict::Yes), level(8.0, Verdict::Yes)]);
        let said = next(&found, "a.toml");
        assert!(
            said.contains("--set release.epsilon=3 --set train.randomness=own") && !said.contains("=8"),
            "{said}"
        );
        let mut levels =
            vec![level(1.0, Verdict::Yes), level(3.0, Verdict::NotShown), level(8.0, Verdict::Yes)];
        in_sequence(&mut levels);
        let found_in_sequence: Vec<Verdict> = levels.iter().map(|level| level.verdict).collect();
        assert_eq!(found_in_sequence, [Verdict::NotShown, Verdict::NotShown, Verdict::Yes]);
        let said = next(&worth(vec![level(1.0, Verdict::No), level(3.0, Verdict::NotShown)]), "a.toml");
        assert!(
            said.starts_with(
                "`fet run a.toml --set release.kind=none` trains the best method of the primary"
            ),
            "{said}"
        );
        let said = text(&found);
        for part in [
            "RMSE with the primary alone: 2.000 (linear model)",
            "ε = 1. Not shown: do not federate at this ε",
            "ε = 3. Yes",
            "made 6 releases with noise that follows from public seeds",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(!said.contains("the noise follows from the experiment's seed"), "{said}");
    }
}
