//! The common parts of all charts: the canvas, and series that can be distinguished without colour.

use std::error::Error;
use std::ops::Range;

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// A picture being drawn.
pub(super) type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Two axes of numbers on it.
pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// What drawing can fail with.
pub(super) type Drawn = Result<(), Box<dyn Error>>;

/// Draws a chart of the given size and returns it as SVG.
pub(super) fn svg(size: (u32, u32), draw: impl FnOnce(&Canvas<'_>) -> Drawn) -> anyhow::Result<String> {
    let mut text = String::new();
    let run = |text: &mut String| -> Drawn {
        let canvas = SVGBackend::with_string(text, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        draw(&canvas)?;
        canvas.present()?;
        Ok(())
    };
    run(&mut text).map_err(|error| anyhow!("cannot draw: {error}"))?;
    Ok(text)
}

/// Labelled axes on a part of the canvas.
pub(super) fn axes<'a, 'b>(
    area: &'a Canvas<'b>,
    title: &str,
    (x_name, x): (&str, Range<f64>),
    (y_name, y): (&str, Range<f64>),
) -> Result<Chart<'a, 'b>, Box<dyn Error>> {
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(x, y)?;
    // Epochs and parties are whole numbers: nothing stands between them.
    let counted = x_name.ends_with("epoch") || x_name.ends_with("party");
    let whole = |x: &f64| if x.fract() == 0.0 { format!("{x:.0}") } else { String::new() };
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(x_name).y_desc(y_name).light_line_style(WHITE);
    if counted {
        mesh.x_label_formatter(&whole);
    }
    mesh.draw()?;
    Ok(chart)
}

/// Draws a series: points with a distinct shape, and a line through them if they are `joined`.
pub(super) fn series<'a, 'b: 'a>(
    chart: &mut Chart<'a, 'b>,
    index: usize,
    name: &str,
    points: &[(f64, f64)],
    joined: bool,
) -> Drawn {
    // A palette that the colour-blind can tell apart (Okabe and Ito).
    const PALETTE: [(u8, u8, u8); 6] =
        [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (0, 0, 0)];
    let (red, green, blue) = PALETTE[index % PALETTE.len()];
    let colour = RGBColor(red, green, blue);
    if joined {
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(1)))?;
    }
    let (solid, line) = (colour.filled(), colour.stroke_width(2));
    let points = points.iter().copied();
    let entry = match index % 4 {
        0 => chart
            .draw_series(points.map(|point| Circle::new(point, 4, solid)))?
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, solid).into_dyn()),
        1 => chart
            .draw_series(points.map(|point| TriangleMarker::new(point, 5, solid)))?
            .legend(move |(x, y)| TriangleMarker::new((x + 8, y), 5, solid).into_dyn()),
        2 => chart
            .draw_series(points.map(|point| Cross::new(point, 4, line)))?
            .legend(move |(x, y)| Cross::new((x + 8, y), 4, line).into_dyn()),
        _ => chart
            .draw_series(points.map(|point| Circle::new(point, 4, line)))?
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, line).into_dyn()),
    };
    entry.label(name);
    Ok(())
}

/// The legend: the shape of each series.
pub(super) fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>) -> Drawn {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

/// A range with room above its values for a legend.
pub(super) fn with_legend(range: Range<f64>) -> Range<f64> {
    range.start..range.end + 0.3 * (range.end - range.start)
}

/// The range of values, widened a little so that nothing touches the frame.
pub(super) fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    if low > high {
        return 0.0..1.0;
    }
    let margin = if high > low { 0.05 * (high - low) } else { 0.05 * high.abs().max(1.0) };
    low - margin..high + margin
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_hold_their_values() {
        let check = |values: &[f64], low: f64, high: f64| {
            let range = range(values.iter().copied());
            assert!((range.start - low).abs() < 1e-9 && (range.end - high).abs() < 1e-9, "{range:?}");
        };
        check(&[1.0, 3.0, f64::NAN], 0.9, 3.1);
        check(&[5.0], 4.75, 5.25);
        check(&[0.0], -0.05, 0.05);
        check(&[], 0.0, 1.0);
    }
}
