//! Markers of series and of published figures, and lines.

use super::text::escaped;
use super::{COLOURS, Series};

/// The marker of a series, for legends.
pub fn swatch(number: usize) -> String {
    let class = number % COLOURS;
    let sign = sign(number, 8.0, 7.0, "");
    format!(
        r#"<svg class="swatch" width="16" height="14" viewBox="0 0 16 14" aria-hidden="true"><g class="s{class}">{sign}</g></svg>"#
    )
}

/// Series differ in shape as well as in colour, so the chart is readable on paper and for the colour-blind.
pub(crate) fn sign(number: usize, x: f64, y: f64, title: &str) -> String {
    let path = match number % 4 {
        0 => format!("M{:.1} {y:.1}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z", x - 5.0),
        1 => format!("M{:.1} {:.1}h9v9h-9Z", x - 4.5, y - 4.5),
        2 => format!("M{x:.1} {:.1}l5.5 10h-11Z", y - 6.0),
        _ => format!("M{x:.1} {:.1}l5.5 -10h-11Z", y + 6.0),
    };
    format!(r#"<path class="sign" d="{path}"><title>{}</title></path>"#, escaped(title))
}

/// Marker of a published figure.
pub(crate) fn diamond(x: f64, y: f64) -> String {
    format!(
        r#"<path class="paper" d="M{x:.1} {:.1}l6 6l-6 6l-6 -6Z"><title>from the paper</title></path>"#,
        y - 6.0
    )
}

/// Opening tag of the group of a series.
pub(crate) fn group(number: usize) -> String {
    format!(r#"<g class="s{}" data-series="{number}">"#, number % COLOURS)
}

/// Opens the group of a series and draws its curve in front of the curves of its seeds. Returns also the positions of the curve's
/// points, to which `at` maps the points.
pub(crate) fn curve(series: &Series, at: impl Fn(&(f64, f64)) -> (f64, f64)) -> (String, Vec<(f64, f64)>) {
    let place = |points: &[(f64, f64)]| points.iter().map(&at).collect::<Vec<_>>();
    let mut svg = group(series.number);
    for seed in series.seeds.iter().filter(|_| series.seeds.len() > 1) {
        svg.push_str(&line("thin", &place(seed)));
    }
    let points = place(&series.curve);
    svg.push_str(&line("curve", &points));
    (svg, points)
}

pub(crate) fn line(class: &str, points: &[(f64, f64)]) -> String {
    if points.len() < 2 {
        return String::new();
    }
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!(r#"<polyline class="{class}" points="{}"/>"#, points.join(" "))
}
