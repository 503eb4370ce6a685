//! Drift: comparison of new rows with the training rows of a run.

use fet_core::data::PartyTable;
use fet_eval::drift::{Shift, moved};
use fet_federation::prepare::{Compared, Period, Reference};
use fet_federation::trainer::SavedModel;

/// Maximum number of columns that the warning describes.
const MOST_COLUMNS: usize = 5;

/// Minimum number of new rows: the p-values are asymptotic, and fewer rows show only great distances.
const LEAST_ROWS: usize = 20;

/// Comparison of new rows with the training rows; without columns if the model lacks their summary.
pub(crate) struct Drift {
    rows: usize,
    columns: Vec<Compared>,
}

impl Drift {
    /// Compares the columns of new rows with those of the training rows, except for keys that no model sees.
    pub(crate) fn of_columns(model: &SavedModel, records: &PartyTable) -> Self {
        let key_inputs = !model.preparing().keys_hidden;
        let columns = model.reference().map(|reference| reference.compare(records, key_inputs));
        Self { rows: records.rows(), columns: columns.unwrap_or_default() }
    }

    /// Returns the warning about columns and predictions that moved, or about a missing summary. `values` are
    /// the predictions.
    pub(crate) fn warnings(self, model: &SavedModel, values: &[f64]) -> Option<String> {
        let Some(reference) = model.reference() else {
            return Some(
                "the model has no summary of its training rows, because an earlier build saved it; the new rows are \
                 not compared with them"
                    .to_string(),
            );
        };
        if self.rows < LEAST_ROWS {
            return None;
        }
        let predictions = reference.compare_predictions(model.objective(), values);
        let all: Vec<Compared> = self.columns.into_iter().chain(predictions).collect();
        let shifts: Vec<Shift> = all.iter().map(|compared| compared.shift).collect();
        let places = moved(&shifts);
        if places.is_empty() {
            return None;
        }
        let shown: Vec<String> = places.iter().take(MOST_COLUMNS).map(|&place| text(&all[place])).collect();
        let others = places.len() - shown.len();
        let rest = if others > 0 { format!(" and {others} more") } else { String::new() };
        Some(format!(
            "the new rows differ from the training rows: {}{rest} (distance from 0 to 1, with its 95 % margin). The \
             metrics and intervals of the run hold for rows like the {}.",
            shown.join("; "),
            described(reference)
        ))
    }
}

fn text(Compared { name, shift, medians }: &Compared) -> String {
    let medians = medians.as_ref().map(|[was, is]| format!(", median {is}, was {was}")).unwrap_or_default();
    format!("{name} {:.2} ± {:.2}{medians}", shift.distance, shift.margin)
}

/// Returns the number and the period of the training rows.
pub(crate) fn described(reference: &Reference) -> String {
    let period = reference.period.as_ref();
    let period = period.map(|Period { column, from, to }| format!(" (`{column}` from {from} to {to})"));
    format!("{} training rows{}", reference.rows, period.unwrap_or_default())
}
