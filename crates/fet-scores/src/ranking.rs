//! Areas under the curves over all thresholds. Their formulas stand at [`Metric`](crate::Metric).

use crate::metric::Task;
use crate::predictions::Predictions;
use crate::undefined::Undefined;

pub(crate) fn auc_roc(rows: &Predictions<'_>) -> Result<f64, Undefined> {
    over_classes(rows, |class| {
        let curve = Curve::new(rows, class);
        if curve.negative() <= 0.0 {
            return Err(Undefined::Class { class, all: true });
        }
        if curve.positive() <= 0.0 {
            return Err(Undefined::Class { class, all: false });
        }
        let area: f64 = curve.steps().map(|(old, new)| (new.1 - old.1) * (new.0 + old.0) / 2.0).sum();
        Ok(area / curve.positive() / curve.negative())
    })
}

pub(crate) fn auc_pr(rows: &Predictions<'_>) -> Result<f64, Undefined> {
    over_classes(rows, |class| {
        let curve = Curve::new(rows, class);
        if curve.positive() <= 0.0 {
            return Err(Undefined::Class { class, all: false });
        }
        let area: f64 = curve.steps().map(|(old, new)| (new.0 - old.0) * new.0 / (new.0 + new.1)).sum();
        Ok(area / curve.positive())
    })
}

/// `area` of class 1 of two, else the mean over classes; undefined if it is for one of them.
fn over_classes(
    rows: &Predictions<'_>,
    area: impl Fn(usize) -> Result<f64, Undefined>,
) -> Result<f64, Undefined> {
    match rows.task() {
        Task::Regression | Task::Binary => area(1),
        Task::Multiclass { classes } => {
            let areas: Result<Vec<f64>, Undefined> = (0..classes).map(area).collect();
            Ok(areas?.iter().sum::<f64>() / classes as f64)
        }
    }
}

/// The weights of true and of false positives at each distinct score, from the highest down, after (0, 0).
struct Curve(Vec<(f64, f64)>);

impl Curve {
    fn new(rows: &Predictions<'_>, class: usize) -> Self {
        let mut scored: Vec<(f64, f64, bool)> = rows
            .counted()
            .map(|row| (rows.probability(row, class), rows.weight(row), rows.class(row) == class))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut points = vec![(0.0, 0.0)];
        let (mut hits, mut misses) = (0.0, 0.0);
        for ties in scored.chunk_by(|a, b| a.0 == b.0) {
            for (_, weight, hit) in ties {
                *(if *hit { &mut hits } else { &mut misses }) += weight;
            }
            points.push((hits, misses));
        }
        Self(points)
    }

    fn positive(&self) -> f64 {
        self.0[self.0.len() - 1].0
    }

    fn negative(&self) -> f64 {
        self.0[self.0.len() - 1].1
    }

    fn steps(&self) -> impl Iterator<Item = ((f64, f64), (f64, f64))> + '_ {
        self.0.windows(2).map(|pair| (pair[0], pair[1]))
    }
}
