//! `digits`: 1,797 real handwritten digits of 8 × 8 pixels (UCI, Alpaydin & Kaynak), included in the crate
//! `smartcore`. The quickstart uses this table because it needs no file.

use fet_core::data::{DataError, DatasetContext, Labelled, Matrix, Source, Task};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `digits`, which has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DigitsSettings {}

impl Recipe<dyn Source> for DigitsSettings {
    fn build(&self, _context: &DatasetContext<'_>) -> Result<Box<dyn Source>, Violation> {
        Ok(Box::new(Digits))
    }
}

inventory::submit! {
    Plugin::<dyn Source>::new::<DigitsSettings>("digits", "1,797 handwritten digits of 8 x 8 pixels; needs no file")
}

struct Digits;

impl Source for Digits {
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&self) -> Result<Labelled, DataError> {
        let data = smartcore::dataset::digits::load_dataset();
        let features = Matrix::new(data.num_features, data.data);
        Ok(Labelled {
            task: Task::Multiclass,
            classes: 10,
            features,
            labels: data.target.into_iter().map(f64::from).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the figures in the description of the data set (scikit-learn's copy).
    #[test]
    fn the_digits_are_the_digits() {
        let data = Digits.read().expect("embedded");
        assert_eq!((data.features.rows(), data.features.columns()), (1_797, 64));
        let count = |digit: f64| data.labels.iter().filter(|&&y| y == digit).count();
        let counts: Vec<usize> = (0..10u8).map(|digit| count(f64::from(digit))).collect();
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        assert!(data.features.values().iter().all(|&x| (0.0..=16.0).contains(&x) && x.fract() == 0.0));
        assert_eq!(data.features.row(0)[..8], [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0]);
    }
}
