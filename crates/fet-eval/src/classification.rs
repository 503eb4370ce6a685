//! Metrics of predicted classes. [`Metric`](crate::Metric) states their formulas.

use crate::confusion::Confusion;
use crate::predictions::Predictions;

pub(crate) fn accuracy(rows: &Predictions<'_>) -> f64 {
    rows.mean(|row| f64::from(u8::from(rows.class(row) == rows.predicted_class(row))))
}

pub(crate) fn balanced_accuracy(rows: &Predictions<'_>) -> f64 {
    let confusion = Confusion::new(rows);
    let shares = (0..rows.task().classes())
        .filter(|class| confusion.of_class(*class) > 0.0)
        .map(|class| confusion.correct(class) / confusion.of_class(class));
    mean(shares)
}

pub(crate) fn macro_f1(rows: &Predictions<'_>) -> f64 {
    let confusion = Confusion::new(rows);
    let met = |class: usize| confusion.of_class(class) + confusion.taken_for(class);
    let scores = (0..rows.task().classes())
        .filter(|class| met(*class) > 0.0)
        .map(|class| 2.0 * confusion.correct(class) / met(class));
    mean(scores)
}

/// Returns the mean of the values. There is at least one value, because some row has a class.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}
