//! `curves.svg`: training loss and validation metric by epoch, one line per run.

use fet_records::EpochReport;

use super::Run;
use super::chart::{axes, legend, range, series, svg, with_legend};

/// A figure of an epoch.
type Figure = fn(&EpochReport) -> f64;

/// Epochs and values of one figure of a run's report, if it is a number.
fn curve(run: &Run, figure: Figure) -> Vec<(f64, f64)> {
    let points = run.report.epochs.iter().map(|epoch| (epoch.epoch as f64, figure(epoch)));
    points.filter(|point| point.1.is_finite()).collect()
}

pub(super) fn draw(runs: &[Run]) -> anyhow::Result<String> {
    let metric = runs.first().map_or("metric", |run| run.report.metric.name.as_str());
    svg((1100, 460), |canvas| {
        let parts = canvas.split_evenly((1, 2));
        let panels: [(&str, &str, Figure); 2] = [
            ("Training loss", "loss", |epoch| epoch.train_loss),
            ("Validation", metric, |epoch| epoch.validation),
        ];
        for (area, (title, unit, figure)) in parts.iter().zip(panels) {
            let curves: Vec<_> = runs.iter().map(|run| curve(run, figure)).collect();
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
