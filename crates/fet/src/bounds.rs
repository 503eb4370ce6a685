//! Texts about intervals and sets of classes: warnings, and tables of their coverage.

use fet_eval::conformal::{Bounds, Conformal};
use fet_eval::{Coverage, Covered};
use fet_privacy::audit::{highest, lowest};

/// Noun of the test rows in warnings.
pub(crate) const TEST_ROWS: &str = "test rows";
/// Probability below which a coverage warns.
const ALPHA: f64 = 1e-3;
/// Half of the probability that an exact interval does not contain its share.
const TAIL: f64 = 0.025;
/// Maximum number of classes in a warning or table.
const MOST_CLASSES: usize = 20;

/// Returns the name of a class.
pub(crate) fn class_name(names: &[String], class: usize) -> String {
    names.get(class).cloned().unwrap_or_else(|| class.to_string())
}

/// Returns the warnings about bounds that cannot exclude a class, and about rows that they cover too rarely.
pub(crate) fn warnings(
    conformal: &Conformal,
    coverage: &Coverage,
    class_names: &[String],
    rows: &str,
) -> Vec<String> {
    unbounded(conformal, class_names, "validation rows")
        .into_iter()
        .chain(too_few(conformal, coverage, class_names, rows))
        .collect()
}

/// Returns a warning about intervals or classes with too few of the rows that calibrated the bounds; `rows` names these
/// rows.
pub(crate) fn unbounded(conformal: &Conformal, class_names: &[String], rows: &str) -> Option<String> {
    let classes = conformal.unbounded_classes();
    if !conformal.is_bounded() && classes.is_empty() {
        let least = Conformal::least_rows(conformal.alpha);
        return Some(format!(
            "no interval is written: {} {rows} are too few for a bound with probability {}, which needs {least}",
            conformal.rows,
            shown(1.0 - conformal.alpha)
        ));
    }
    if classes.is_empty() || !conformal.is_bounded() {
        return None;
    }
    let least = Conformal::least_rows(conformal.alpha);
    Some(format!(
        "`likely` always contains {}: fewer than {least} {rows} have the class, too few to exclude it with \
         probability {}",
        listed(&classes, class_names),
        shown(1.0 - conformal.alpha)
    ))
}

/// Returns a warning if the bounds cover fewer rows than the calibration rows suggest.
pub(crate) fn too_few(
    conformal: &Conformal,
    coverage: &Coverage,
    class_names: &[String],
    rows: &str,
) -> Option<String> {
    let probability = coverage.shortfall(conformal);
    if probability >= ALPHA {
        return None;
    }
    let share = |covered: &Covered| covered.share().unwrap_or(0.0);
    let what = match &conformal.bounds {
        Bounds::Width(_) | Bounds::Scaled { .. } => {
            format!("the intervals contain the true value of {} of the {rows}", shown(share(&coverage.all)))
        }
        Bounds::AllClasses(_) => {
            format!(
                "the sets of classes contain the true class of {} of the {rows}",
                shown(share(&coverage.all))
            )
        }
        Bounds::Classes(_) => {
            let mut all: Vec<usize> =
                (0..coverage.classes.len()).filter(|&class| coverage.classes[class].rows > 0).collect();
            all.sort_by(|&a, &b| share(&coverage.classes[a]).total_cmp(&share(&coverage.classes[b])));
            let class = all.first().copied().unwrap_or(0);
            format!(
                "the sets of classes contain the true class of {} of the {rows} with class {}",
                shown(share(&coverage.classes[class])),
                class_name(class_names, class)
            )
        }
    };
    Some(format!(
        "{what}, not {} as stated. These rows differ from the validation rows, for example because they are later: \
         do not rely on the bounds for rows like these.",
        shown(coverage.stated)
    ))
}

/// Returns the coverage as lines of a Markdown table: all rows, then classes or deciles.
pub(crate) fn table(coverage: &Coverage, class_names: &[String]) -> String {
    let size = if coverage.classes.is_empty() { "mean width" } else { "mean number of classes" };
    let mut table = format!("| rows | number | covered | {size} |\n|---|---|---|---|\n");
    let mut line = |name: String, covered: &Covered| {
        let share = covered.share().map_or_else(|| "-".to_string(), shown);
        let size = covered.size.map_or_else(|| "-".to_string(), |size| format!("{size:.4}"));
        table += &format!("| {name} | {} | {share} | {size} |\n", covered.rows);
    };
    line("all".to_string(), &coverage.all);
    for (class, covered) in coverage.classes.iter().enumerate().take(MOST_CLASSES) {
        line(format!("class {}", class_name(class_names, class)), covered);
    }
    for decile in &coverage.deciles {
        line(format!("prediction from {:.6} to {:.6}", decile.from, decile.to), &decile.covered);
    }
    table
}

fn listed(classes: &[usize], names: &[String]) -> String {
    let shown: Vec<String> =
        classes.iter().take(MOST_CLASSES).map(|&class| format!("\"{}\"", class_name(names, class))).collect();
    let others = classes.len() - shown.len();
    let rest = if others > 0 { format!(" and {others} other classes") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

/// Returns the exact 95 % interval of a share (Clopper and Pearson 1934); from 0 to 1 without rows.
pub(crate) fn share_interval(found: usize, rows: usize) -> [f64; 2] {
    match rows {
        0 => [0.0, 1.0],
        rows => [lowest(found as u64, rows as u64, TAIL), highest(found as u64, rows as u64, TAIL)],
    }
}

/// Returns a share as a percentage.
pub(crate) fn shown(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
