//! `nearest`: finds exactly the K nearest keys, by Euclidean distance or along the sphere.
//!
//! A kd-tree searches keys of up to eight dimensions. Beyond that, the linker computes all distances. Equal
//! distances are ordered by index. Euclidean distances use the raw keys, so for longitudes and latitudes they
//! are in degrees; with `units`, each column is divided by its unit first. With `metric = "haversine"`, keys
//! are longitude and latitude in degrees, and distances are in metres.

use fet_linkage::neighbours::Neighbours;
use fet_linkage::points;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::links;
use fet_core::data::{KeyKind, Matrix};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Reveals, check_numbers};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `nearest`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NearestSettings {
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Measure of the distance between keys.
    pub metric: Metric,
    /// Difference in each key column that counts as a distance of 1, so that columns with other ranges have an
    /// equal importance; empty for 1 in every column.
    #[schemars(extend("x-rule" = "empty, or a number above 0 for each key column"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<f64>,
}

/// Measure of the distance between keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Euclidean distance, in the unit of the keys.
    #[default]
    Euclidean,
    /// Great-circle distance in metres; keys are longitude and latitude in degrees, in this order.
    Haversine,
}

impl Default for NearestSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, metric: Metric::Euclidean, units: Vec::new() }
    }
}

impl Recipe<dyn Linker> for NearestSettings {
    fn check(&self) -> Result<(), Violation> {
        let is_unit = |unit: &f64| unit.is_finite() && *unit > 0.0;
        if !self.units.iter().all(is_unit) {
            let rule = "must be a number above 0 for each key column";
            return Err(Violation::new("units", rule, format!("{:?}", self.units)));
        }
        if self.metric == Metric::Haversine && !self.units.is_empty() {
            let rule = "must be left out for `metric = \"haversine\"`, which measures in metres";
            return Err(Violation::new("units", rule, format!("{:?}", self.units)));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Nearest(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<NearestSettings>("nearest", "the K nearest keys by distance, exactly")
}

/// Disclosure of linkers that send plain keys.
pub(super) const CLEAR: Reveals = Reveals {
    secondary: "every primary key, in the clear",
    primary: "nothing",
    eavesdropper: "every primary key, unless messages are encrypted",
};

struct Nearest(NearestSettings);

impl Linker for Nearest {
    fn about(&self) -> About {
        About { independent: true, ..About::new(self.0.neighbours, KeyKind::Numbers, CLEAR) }
    }

    fn data_holder(&self, _seed: u64) -> Box<dyn DataHolder> {
        Box::new(Near(self.0.clone()))
    }
}

struct Near(NearestSettings);

impl DataHolder for Near {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let NearestSettings { neighbours, pad, metric, ref units } = self.0;
        let (queries, records) = check_numbers(task.queries, task.records, neighbours, pad)?;
        let take = neighbours.min(records.rows());
        let found = if units.is_empty() {
            nearest(queries, records, take, metric)?
        } else {
            nearest(&in_units(queries, units)?, &in_units(records, units)?, take, metric)?
        };
        (task.progress)(queries.rows());
        Ok(links(neighbours, found))
    }
}

/// Divides each column by its unit.
fn in_units(keys: &Matrix<f64>, units: &[f64]) -> Result<Matrix<f64>, LinkError> {
    if units.len() != keys.columns() {
        return Err(LinkError::Setting(format!(
            "`linker.units` must have a number for each of the {} key columns; it is {units:?}",
            keys.columns()
        )));
    }
    let values = keys.values().chunks_exact(units.len());
    let scaled = values.flat_map(|key| key.iter().zip(units).map(|(value, unit)| value / unit));
    Ok(Matrix::new(units.len(), scaled.collect()))
}

/// Returns the `take` nearest records of each query. Scores are negative distances.
pub(super) fn nearest(
    queries: &Matrix<f64>,
    records: &Matrix<f64>,
    take: usize,
    metric: Metric,
) -> Result<Neighbours, LinkError> {
    let (found, distance): (_, fn(f64) -> f64) = match metric {
        Metric::Euclidean => {
            (points::nearest(queries.values(), records.values(), queries.columns(), take), f64::sqrt)
        }
        Metric::Haversine => {
            check_degrees(queries)?;
            check_degrees(records).map_err(LinkError::of_own_table)?;
            let (queries, records) =
                (points::on_sphere(queries.values()), points::on_sphere(records.values()));
            (points::nearest(&queries, &records, 3, take), points::along_sphere)
        }
    };
    let scores = found.squared.iter().map(|&squared| -distance(squared) as f32).collect();
    Ok(Neighbours { take, indices: found.indices, scores })
}

/// The problem of keys that name the latitude before the longitude, for a linker whose settings say `metric = "haversine"`.
pub fn latitude_first(settings: &toml::Table, keys: &[String]) -> Option<String> {
    fn on_sphere(settings: &toml::Table) -> bool {
        settings.get("metric").and_then(toml::Value::as_str) == Some("haversine")
            || settings.values().filter_map(toml::Value::as_table).any(on_sphere)
    }
    let begins = |name: &str, with: &[&str]| {
        let name = name.to_lowercase();
        let mut words = name.split(|sign: char| !sign.is_alphanumeric());
        words.any(|word| with.iter().any(|start| word.starts_with(start)))
            || with.iter().any(|start| start.len() > 3 && name.contains(start))
    };
    let [first, second] = keys else { return None };
    let is_swapped = begins(first, &["lat", "latitude"])
        && begins(second, &["lon", "lng", "longitude"])
        && on_sphere(settings);
    is_swapped.then(|| {
        format!(
            "{first:?}, {second:?}: the longitude comes first for `metric = \"haversine\"`; name {second:?}, {first:?}, at every party"
        )
    })
}

fn check_degrees(keys: &Matrix<f64>) -> Result<(), LinkError> {
    if keys.columns() != 2 {
        let problem = format!(
            "`linker.metric = \"haversine\"` needs two columns, longitude and latitude; there are {}",
            keys.columns()
        );
        return Err(LinkError::Value { row: 0, problem });
    }
    for (row, key) in keys.values().chunks_exact(2).enumerate() {
        let (lon, lat) = (key[0], key[1]);
        if !(-180.0..=360.0).contains(&lon) || !(-90.0..=90.0).contains(&lat) {
            let problem = format!(
                "a longitude must be -180 to 360 degrees and a latitude -90 to 90; they are {lon} and {lat} (the longitude \
                 comes first)"
            );
            return Err(LinkError::Value { row, problem });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::Keys;
    use fet_core::rng::{Purpose, stream};
    use rand::RngExt;

    fn keys(rows: usize, columns: usize, seed: u64) -> Keys {
        let mut rng = stream(seed, 0, Purpose::Linking, 0);
        Matrix::new(columns, (0..rows * columns).map(|_| rng.random::<f64>()).collect()).into()
    }

    fn link(settings: NearestSettings, queries: &Keys, records: &Keys) -> Result<Links, LinkError> {
        Near(settings).link(&LinkTask::new(queries, records))
    }

    #[test]
    fn similarities_are_minus_the_distances() {
        let at = |values: &[f64]| Keys::from(Matrix::new(2, values.to_vec()));
        let settings = |metric| NearestSettings { neighbours: 2, metric, ..NearestSettings::default() };
        let (query, records) = (at(&[179.9, 0.0]), at(&[179.0, 0.0, -179.9, 0.0]));
        let flat = link(settings(Metric::Euclidean), &query, &records).expect("linkable");
        assert_eq!(
            (flat.row(0), flat.similarities(0)),
            ([0, 1].as_slice(), Some([-0.9f32, -359.8].as_slice()))
        );
        let round = link(settings(Metric::Haversine), &query, &records).expect("linkable");
        assert_eq!(round.row(0), [1, 0], "the date line is not a barrier");
        let metres = round.similarities(0).expect("it gives them")[0];
        assert!((metres + 22_239.0).abs() < 1.0, "{metres}");
    }

    #[test]
    fn units_give_columns_of_other_ranges_an_equal_importance() {
        let at = |values: &[f64]| Keys::from(Matrix::new(2, values.to_vec()));
        let (query, records) = (at(&[0.0, 0.0]), at(&[0.3, 0.0, 0.0, 24.0]));
        let with =
            |units: &[f64]| NearestSettings { neighbours: 2, units: units.to_vec(), ..Default::default() };
        assert_eq!(link(with(&[]), &query, &records).expect("linkable").row(0), [0, 1]);
        let scaled = link(with(&[0.1, 24.0]), &query, &records).expect("linkable");
        assert_eq!(scaled.row(0), [1, 0]);
        assert_eq!(scaled.similarities(0).expect("it gives them")[0], -1.0);
        let error = link(with(&[1.0]), &query, &records).expect_err("two columns").to_string();
        assert!(error.contains("each of the 2 key columns"), "{error}");
        for (units, metric) in [
            (vec![0.0, 1.0], Metric::Euclidean),
            (vec![f64::NAN], Metric::Euclidean),
            (vec![1.0; 2], Metric::Haversine),
        ] {
            let settings = NearestSettings { units, metric, ..Default::default() };
            assert!(settings.check().is_err(), "{settings:?}");
        }
    }

    #[test]
    fn degrees_are_checked() {
        let settings = || NearestSettings { neighbours: 1, metric: Metric::Haversine, ..Default::default() };
        let at = |values: &[f64]| Keys::from(Matrix::new(2, values.to_vec()));
        let error =
            link(settings(), &at(&[1.3, 103.8]), &at(&[0.0, 0.0])).expect_err("latitude first").to_string();
        assert!(
            error.contains("key 0 (from 0)")
                && error.contains("103.8")
                && error.contains("longitude comes first"),
            "{error}"
        );
        let error = link(settings(), &keys(2, 3, 1), &keys(2, 3, 1)).expect_err("three columns").to_string();
        assert!(error.contains("two columns"), "{error}");
    }

    #[test]
    fn a_small_party_is_refused_or_padded() {
        let (queries, records) = (keys(4, 2, 1), keys(3, 2, 2));
        let link =
            |pad| link(NearestSettings { neighbours: 5, pad, ..Default::default() }, &queries, &records);
        assert_eq!(link(false), Err(LinkError::TooFewRecords { neighbours: 5, records: 3 }));
        let links = link(true).expect("padding was allowed");
        assert_eq!((links.neighbours(), links.available()), (5, 3));
        assert_eq!(links.row(0)[..2], links.row(0)[3..]);
    }
}
