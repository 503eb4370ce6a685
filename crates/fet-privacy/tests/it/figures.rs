//! Compares ε with the figures of two other programs (`reference/figures.py` and the table that it wrote).

use fet_privacy::accountant::{Account, Event};

/// Tolerance: the interval of the other programs may miss the true value by its rounding. The two programs
/// differ by up to 2e-4.
const AGREEMENT: f64 = 2e-4;

#[test]
fn figures_are_those_of_other_programs_to_a_thousandth() {
    let mut rows = 0;
    for line in include_str!("reference/figures.csv").lines().skip(1) {
        let values: Vec<f64> = line.split(',').map(|value| value.parse().expect("a number")).collect();
        let [rate, noise, steps, delta, upper, low, high] = values[..] else {
            panic!("seven columns: {line}")
        };
        let event = Event { noise, rate, steps: steps as u64 };
        let found = Account::from_events(&[event], delta).expect("in range").epsilon();
        assert!(found <= upper + 1e-3 && found <= high + 1e-3, "{line}: {found}");
        // Both programs round up or to within 5e-4, so a figure below both is wrong.
        assert!(found >= low - AGREEMENT && found >= upper - AGREEMENT, "{line}: {found}");
        rows += 1;
    }
    assert_eq!(rows, 14);
}
