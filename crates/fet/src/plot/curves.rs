//! `curves.svg`: training loss and validation metric by epoch, one line a run.

use super::Run;
use super::chart::{axes, legend, range, series, svg, with_legend};

/// Epochs and values of one field of a run's report.
fn curve(run: &Run, field: &str) -> Vec<(f64, f64)> {
    let epochs = run.report["epochs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let point = |epoch: &serde_json::Value| Some((epoch["epoch"].as_f64()?, epoch[field].as_f64()?));
    epochs.iter().filter_map(point).collect()
}

pub(super) fn draw(runs: &[Run]) -> anyhow::Result<String> {
    let metric = runs.first().and_then(|run| run.report["metric"]["name"].as_str()).unwrap_or("metric");
    svg((1100, 460), |canvas| {
        let parts = canvas.split_evenly((1, 2));
        let panels = [("Training loss", "loss", "train_loss"), ("Validation", metric, "validation")];
        for (area, (title, unit, field)) in parts.iter().zip(panels) {
            let curves: Vec<_> = runs.iter().map(|run| curve(run, field)).collect();
            let x = range(curves.iter().flatten().map(|point| point.0));
            let y = with_legend(range(curves.iter().flatten().map(|point| point.1)));
            let mut chart = axes(area, title, ("epoch", x), (unit, y))?;
            for (index, (run, curve)) in runs.iter().zip(&curves).enumerate() {
                series(&mut chart, index, &run.name, curve, true)?;
            }
            legend(&mut chart)?;
        }
        Ok(())
    })
}
