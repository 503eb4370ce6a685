//! Answer of `fet worth` as text.

use std::fmt::Write;
use std::path::Path;

use fet_eval::Metric;

use super::findings::{RECOMMENDED, Worth};
use super::plan::Receives;
use super::verdict::{Answer, Gain, Verdict, error, rows_needed};
use fet_study::output::shell_quoted;

/// Maximum share of the error alone in a nearly perfect prediction. The columns of other parties rarely give one.
const LEAK: f64 = 0.02;

/// Minimum lead of another method alone on the test rows, in gains, for a remark.
const NOTABLE: f64 = 0.1;

/// Returns the answer as text; `folder` has the files.
pub(super) fn text(worth: &Worth, folder: &Path) -> String {
    let mut text = format!("{}\n", paragraph(worth).join("\n"));
    let _ = write!(text, "\n{}", methods(worth));
    if !worth.checks.parties.is_empty() {
        let _ = writeln!(
            text,
            "\nGain of each party: the best method with all parties, over itself without the party"
        );
        for party in &worth.checks.parties {
            let _ = writeln!(text, "  {:<24} {}", party.name, gain(worth.metric, &party.gain));
        }
    }
    if !worth.checks.labels.is_empty() {
        let _ = writeln!(text, "\nGain by number of training labels");
        for labels in &worth.checks.labels {
            let _ =
                writeln!(text, "  {:>8}                 {}", labels.rows, gain(worth.metric, &labels.gain));
        }
    }
    if !worth.links.is_empty() {
        let _ = writeln!(text, "\nLinks, by the keys");
        for links in &worth.links {
            let _ = writeln!(text, "  {links}");
        }
    }
    let _ = writeln!(text, "\nNext: {}", next(worth, folder));
    let _ = writeln!(text, "The whole answer is in {}.", folder.join("worth.html").display());
    text
}

/// Returns the answer as sentences.
pub(super) fn paragraph(worth: &Worth) -> Vec<String> {
    let Worth { metric, answer, results, .. } = worth;
    let (own, best) = (&results[answer.alone], &results[answer.with]);
    let (from, to) = (metric.show(own.alone.test), metric.show(best.with.test));
    let unit = if metric.unit() == fet_eval::Unit::Share { " %" } else { "" };
    let alone = error(*metric, own.alone.test);
    let share = if alone > 0.0 { 100.0 * answer.gain.mean / alone } else { 0.0 };
    let interval = interval(*metric, &answer.gain);
    let over = match worth.same_split {
        true => "over test rows and seeds; all runs have the same split",
        false => "over test rows and splits",
    };
    let title = match answer.verdict {
        Verdict::Yes => "Yes: federating improves the prediction.",
        Verdict::No => "No: federating does not improve the prediction noticeably.",
        Verdict::NotShown => "Not shown: these rows are too few to decide.",
    };
    let mut all = vec![title.to_string()];
    all.push(format!(
        "{}: {from}{unit} with the primary alone ({}), {to}{unit} with the other parties ({}). Gain {} ({share:.1} % of the \
         error alone; 95 % interval {interval}, {over}).",
        metric.label(),
        own.name,
        best.name,
        signed(*metric, answer.gain.mean),
    ));
    if let Some(random) = &answer.over_random {
        let meaning = if random.lower > 0.0 {
            "so the gain comes from the linked records"
        } else {
            "so a gain from the linked records is not shown"
        };
        all.push(format!(
            "The true links improve on random links by {} {}, {meaning}.",
            signed(*metric, random.mean),
            self::interval(*metric, random)
        ));
    }
    all.extend(federated(worth, answer));
    if error(*metric, best.with.test) <= LEAK * alone {
        all.push(
            "Warning: the prediction with the other parties is nearly perfect. Check that none of their columns is the label \
             under another name, or follows from it."
                .to_string(),
        );
    }
    let direction = metric.direction();
    let strongest = results
        .iter()
        .fold(own, |best, one| if direction.improves(one.alone.test, best.alone.test) { one } else { best });
    let lead = (strongest.alone.test - own.alone.test).abs();
    if lead > NOTABLE * answer.gain.mean.abs() {
        all.push(format!(
            "{} alone is better on the test rows ({}), although not on the validation rows: over it, the gain is {}.",
            capitalised(&strongest.name),
            metric.show(strongest.alone.test),
            signed(*metric, answer.gain.mean - lead)
        ));
    }
    let is_better = |constant: &f64| metric.direction().improves(*constant, own.alone.test);
    if let Some(constant) = worth.constant.filter(is_better) {
        all.push(format!(
            "Warning: a constant prediction ({}) is better than the best method of the primary alone. Compare with the \
             constant, and check the columns and the number of labels.",
            metric.phrase(constant)
        ));
    }
    all
}

/// Returns the sentence about methods that keep all columns at their parties.
fn federated(worth: &Worth, answer: &Answer) -> Option<String> {
    let metric = worth.metric;
    if worth.results[answer.with].receives == Receives::Representations {
        return None;
    }
    let best = &worth.results[answer.federated?];
    let found = answer.federated_gain?;
    Some(format!(
        "{} with the other parties needs their raw columns at the primary. Without this, {} is best: gain {} {} over the best method alone.",
        capitalised(&worth.results[answer.with].name),
        best.name,
        signed(metric, found.mean),
        interval(metric, &found)
    ))
}

/// Returns the table of methods.
fn methods(worth: &Worth) -> String {
    let metric = worth.metric;
    let title = metric.title();
    let mut text =
        format!("{:<32} {:>14} {:>14}   gain (95 %)\n", format!("test {title}"), "alone", "with others");
    if let Some(constant) = worth.constant {
        let _ = writeln!(text, "  {:<30} {:>13}", "a constant", metric.show(constant));
    }
    for (at, result) in worth.results.iter().enumerate() {
        let mark = |is_best: bool| if is_best { "*" } else { " " };
        let _ = writeln!(
            text,
            "  {:<30} {:>13}{} {:>13}{}   {}",
            result.name,
            metric.show(result.alone.test),
            mark(at == worth.answer.alone),
            metric.show(result.with.test),
            mark(at == worth.answer.with),
            gain(metric, &result.gain)
        );
    }
    text + "* best on the validation rows\n"
}

/// Returns the advice for the user's next step.
pub(super) fn next(worth: &Worth, folder: &Path) -> String {
    let recommended = &worth.answer.recommended;
    let run = match worth.has_recommended {
        true => format!("`fet run {}`", shell_quoted(&folder.join(RECOMMENDED).to_string_lossy())),
        false => {
            let sets: Vec<String> =
                recommended.sets.iter().map(|set| format!("--set {}", shell_quoted(set))).collect();
            format!("`fet run` with your experiment and {}", sets.join(" "))
        }
    };
    let rows = worth.label_rows.train + worth.label_rows.validation + worth.label_rows.test;
    match worth.answer.verdict {
        Verdict::Yes => {
            let needs = match recommended.receives {
                Some(Receives::Columns) => ", which needs the raw columns of the others",
                Some(Receives::Representations) | None => ", which keeps all columns at their parties",
            };
            let name = &recommended.name;
            format!("{run} trains {name}{needs}. Then agree on the terms and on the privacy of the records.")
        }
        Verdict::No => format!("{run} trains the best method of the primary alone ({}).", recommended.name),
        Verdict::NotShown => {
            let rows = match rows_needed(&worth.answer.gains(), rows) {
                Some(needed) if (rows + 1..=100 * rows).contains(&needed) => {
                    format!(
                        "a gain of this size needs about {needed} labelled rows in place of {rows} to be shown."
                    )
                }
                _ => "more labelled rows, or better keys, may show a gain.".to_string(),
            };
            match worth.quick {
                true => {
                    format!("the command without --quick has more splits, which may decide. Otherwise {rows}")
                }
                false => rows,
            }
        }
    }
}

/// Formats a gain with its interval.
pub(super) fn gain(metric: Metric, gain: &Gain) -> String {
    format!("{} {}", signed(metric, gain.mean), interval(metric, gain))
}

fn interval(metric: Metric, gain: &Gain) -> String {
    if gain.lower.is_infinite() {
        return "[no interval: too few test rows, or too few of a class]".to_string();
    }
    format!("[{}, {}]", signed(metric, gain.lower), signed(metric, gain.upper))
}

fn signed(metric: Metric, value: f64) -> String {
    let text = metric.show(value);
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| matches!(c, '0' | '.')) => format!("+{digits}"),
        Some(_) => text,
        None => format!("+{text}"),
    }
}

fn capitalised(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map_or_else(String::new, |first| first.to_uppercase().chain(signs).collect())
}

#[cfg(test)]
mod tests {
    use super::super::checks::Checks;
    use super::super::verdict::{Figures, MethodResult, Recommendation};
    use super::*;

    fn worth(verdict: Verdict, mean: f64, half: f64) -> Worth {
        let figures = |test: f64| Figures { validation: test, test, seconds: 1.0 };
        let gain = Gain { mean, lower: mean - half, upper: mean + half, rows: 200 };
        let result = MethodResult {
            name: "FeT-Pool".to_string(),
            receives: Receives::Representations,
            alone: figures(2.0),
            with: figures(2.0 - mean),
            gain,
        };
        let recommended = Recommendation {
            name: "FeT-Pool".to_string(),
            receives: Some(Receives::Representations),
            sets: vec!["method.optimizer={ learning_rate = 0.1 }".to_string()],
        };
        Worth {
            metric: Metric::Rmse,
            label_rows: fet_eval::records::Rows { train: 70, validation: 10, test: 20 },
            splits: 3,
            same_split: false,
            quick: false,
            has_recommended: false,
            links: Vec::new(),
            warnings: Vec::new(),
            constant: Some(3.0),
            results: vec![result],
            answer: Answer {
                verdict,
                alone: 0,
                with: 0,
                federated: None,
                gain,
                federated_gain: None,
                over_random: Some(gain),
                recommended,
            },
            checks: Checks { over_random: Some(gain), parties: Vec::new(), labels: Vec::new() },
        }
    }

    #[test]
    fn names_the_settings_of_the_best_method_as_shell_words() {
        let text = text(&worth(Verdict::Yes, 0.5, 0.1), Path::new("out"));
        assert!(
            text.contains("--set 'method.optimizer={ learning_rate = 0.1 }' trains FeT-Pool, which keeps"),
            "{text}"
        );
        assert!(text.contains("25.0 % of the error alone; 95 % interval [+0.400, +0.600]"), "{text}");
    }

    #[test]
    fn estimates_more_rows_than_there_are() {
        let next = |mean: f64, half: f64| next(&worth(Verdict::NotShown, mean, half), Path::new("out"));
        // 2.8 standard errors of 0.2 / 1.96 are 0.286: (0.286 / 0.1)² times the rows.
        assert!(next(0.1, 0.2).contains("about 817 labelled rows in place of 100"), "{}", next(0.1, 0.2));
        for (mean, half) in [(0.5, 0.2), (-0.1, 0.2), (0.001, 5.0)] {
            assert!(next(mean, half).starts_with("more labelled rows"), "{}", next(mean, half));
        }
        let quick = Worth { quick: true, ..worth(Verdict::NotShown, -0.1, 0.2) };
        let text = super::next(&quick, Path::new("out"));
        assert!(text.starts_with("the command without --quick") && text.contains("Otherwise more"), "{text}");
    }

    #[test]
    fn warns_of_a_nearly_perfect_prediction() {
        let warns =
            |mean: f64| paragraph(&worth(Verdict::Yes, mean, 0.1)).join(" ").contains("nearly perfect");
        assert!(warns(1.97) && warns(2.0) && !warns(1.9), "of an RMSE of 2.0 alone");
    }

    #[test]
    fn names_a_method_alone_that_is_better_on_the_test_rows() {
        let with_another = |test: f64| {
            let mut all = worth(Verdict::Yes, 1.0, 0.1);
            let mut another = all.results[0].clone();
            another.name = "boosted trees".to_string();
            another.alone.test = test;
            all.results.push(another);
            paragraph(&all).join(" ")
        };
        // RMSE 2.0 alone, and a gain of 1.0.
        let text = with_another(1.6);
        assert!(text.contains("Boosted trees alone is better on the test rows (1.600"), "{text}");
        assert!(text.contains("over it, the gain is +0.600"), "{text}");
        for test in [1.95, 2.5] {
            assert!(!with_another(test).contains("better on the test rows"), "{test}");
        }
    }

    #[test]
    fn states_that_an_interval_is_missing() {
        let text = text(&worth(Verdict::NotShown, 0.5, f64::INFINITY), Path::new("out"));
        assert!(text.contains("[no interval: too few test rows, or too few of a class]"), "{text}");
        assert!(!text.contains("inf"), "{text}");
    }
}
