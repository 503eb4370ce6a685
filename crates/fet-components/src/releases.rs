//! Releases that a secondary makes once. To add one, write a file like `surface.rs` and add one `mod` line.

use std::collections::BTreeMap;

use fet_core::privacy::{Loss, NoisyReleases};
use fet_core::registry::Violation;

mod means;
mod record_code;
mod surface;

pub use record_code::{RecordCodeSettings, RecordRelation};
pub use surface::{SurfaceSettings, TableRelation};

/// Ranges of columns, by secondary.
type Ranges = BTreeMap<String, BTreeMap<String, [f64; 2]>>;

// Assumptions that all kinds of releases state.
const DECLARED: &str = "Each released column and each key has a declared form, such as `number:plain`: an inferred form follows from \
                        all records.";
const ONE_RECORD: &str =
    "A person has one record in a table: the ε of several records is larger than their number times ε.";
const CHECKSUMS: &str = "Checksums in reports and in the run's folder stay with people who may know the table: they confirm a guess \
                         of it.";
const EXISTENCE: &str =
    "The guarantee covers neither the number of releases nor that a secondary takes part.";

/// Returns the loss of `values` noisy integers with this noise, in units of their sensitivity.
fn gaussian(noise: f64, values: usize) -> Loss {
    Loss::Gaussian { releases: vec![NoisyReleases { noise, rate: 1.0, count: 1 }], values: values as f64 }
}

/// Refuses ranges that are none.
fn check_ranges(ranges: &Ranges) -> Result<(), Violation> {
    let all = ranges.iter().flat_map(|(party, columns)| columns.iter().map(move |one| (party, one)));
    for (party, (column, [low, high])) in all {
        if !(low.is_finite() && (high - low).is_finite() && low < high) {
            let field = format!("columns.{party}.{column}");
            return Err(Violation::new(field, "must be a range [low, high]", format!("[{low}, {high}]")));
        }
    }
    Ok(())
}

/// Refuses ranges of a secondary that is not among these, unless its name is `other`.
fn check_names(ranges: &Ranges, parties: &[&str], other: Option<&str>) -> Result<(), Violation> {
    let is_known = |name: &str| Some(name) == other || parties.contains(&name);
    match ranges.keys().find(|name| !is_known(name)) {
        Some(unknown) => {
            let rule = format!("must name secondaries ({})", parties.join(", "));
            Err(Violation::new("release.columns", rule, format!("{unknown:?}")))
        }
        None => Ok(()),
    }
}
