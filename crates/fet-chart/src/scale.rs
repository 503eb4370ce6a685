//! The scale of a chart: its ends, ticks and labels.

/// Linear scale with a small margin at both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    pub(crate) fn spanning(values: impl Iterator<Item = f64>) -> Option<Self> {
        let finite = values.filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return None;
        }
        let room = match high {
            _ if high > low => 0.06 * (high - low),
            0.0 => 1.0,
            high => 0.05 * high.abs(),
        };
        Some(Self { low: low - room, high: high + room })
    }

    pub(crate) fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn step(&self, count: usize) -> f64 {
        let rough = (self.high - self.low) / count as f64;
        let power = 10.0_f64.powf(rough.log10().floor());
        [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power)
    }

    pub(crate) fn ticks(&self, count: usize) -> Vec<f64> {
        let step = self.step(count);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// Formats a tick with the digits that the smallest step needs.
    pub(crate) fn label(&self, tick: f64) -> String {
        let digits = (-self.step(7).log10().floor()).clamp(0.0, 12.0) as usize;
        let text = format!("{tick:.digits$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        if text == "-0" { "0".to_string() } else { text.replace('-', "−") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_ticks_inside() {
        let check = |low: f64, high: f64, count: usize, expected: &[&str]| {
            let scale = Scale { low, high };
            let labels: Vec<String> = scale.ticks(count).iter().map(|tick| scale.label(*tick)).collect();
            assert_eq!(labels, expected, "{low} to {high}");
        };
        check(0.0, 1.0, 5, &["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        check(88.3, 96.1, 5, &["90", "92", "94", "96"]);
        check(-0.013, 0.021, 4, &["−0.01", "0", "0.01", "0.02"]);
        check(120.0, 1_900.0, 4, &["500", "1000", "1500"]);
        assert_eq!(Scale::spanning([f64::NAN].into_iter()), None);
        let one = Scale::spanning([3.0].into_iter()).expect("one value is a scale");
        assert!((one.share(3.0) - 0.5).abs() < 1e-9);
        assert_eq!(Scale::spanning([0.0, 0.0].into_iter()), Some(Scale { low: -1.0, high: 1.0 }));
    }
}
