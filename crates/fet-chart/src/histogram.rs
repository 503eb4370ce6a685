//! Histogram with adjacent bars: [`histogram`].

use std::fmt::Write;

use super::frame::Frame;
use super::scale::Scale;
use super::text::escaped;
use super::{Size, Titles};

/// A bar of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Left and right end.
    pub span: (f64, f64),
    /// Height.
    pub height: f64,
    /// Tooltip.
    pub title: String,
}

/// Bars above 0, with a dashed line at the value 0.
pub fn histogram(size: Size, titles: Titles<'_>, bars: &[Bar]) -> String {
    let ends = bars.iter().flat_map(|bar| [bar.span.0, bar.span.1]).chain([0.0]);
    let heights = bars.iter().map(|bar| bar.height).chain([0.0]);
    let (Some(across), Some(up)) = (Scale::spanning(ends), Scale::spanning(heights)) else {
        return String::new();
    };
    if bars.is_empty() {
        return String::new();
    }
    let frame = Frame::new(size, up, titles);
    let at = |value: f64| frame.x(&across, value);
    let mut svg = frame.begin_plane(&across);
    svg.push_str(r#"<g class="s0">"#);
    let floor = frame.y(0.0);
    for bar in bars {
        let (left, right, top) = (at(bar.span.0), at(bar.span.1), frame.y(bar.height));
        // A bar of zero width stays visible.
        let (wide, high) = ((right - left).max(2.0), (floor - top).max(0.0));
        let _ = write!(
            svg,
            r#"<rect class="bin" x="{left:.1}" y="{top:.1}" width="{wide:.1}" height="{high:.1}"><title>{}</title></rect>"#,
            escaped(&bar.title)
        );
    }
    let _ =
        write!(svg, r#"</g><path class="base" d="M{:.1} {:.1}V{:.1}"/>"#, at(0.0), frame.top, frame.bottom);
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::super::{NARROW, WIDE};
    use super::*;

    #[test]
    fn bars_stand_on_zero() {
        let bar = |low: f64, high: f64, height: f64| Bar { span: (low, high), height, title: "a < b".into() };
        for size in [WIDE, NARROW] {
            let bars = [bar(1.0, 2.0, 0.5), bar(2.0, 3.0, 0.25), bar(3.0, 3.0, 0.0)];
            let svg = histogram(size, Titles { chart: "t", x: "error", y: "share" }, &bars);
            let of = |name: &str| -> Vec<f64> {
                let parts = svg.split(r#"class="bin""#).skip(1);
                let value =
                    |part: &str| part.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok();
                parts.filter_map(value).collect()
            };
            let (heights, widths) = (of("height"), of("width"));
            assert!((heights[0] - 2.0 * heights[1]).abs() < 0.2 && heights[2] == 0.0, "{heights:?}");
            assert!((widths[0] - widths[1]).abs() < 0.2 && widths[2] == 2.0, "{widths:?}");
            let ends: Vec<f64> = of("y").iter().zip(&heights).map(|(y, height)| y + height).collect();
            assert!(ends.iter().all(|end| (end - ends[0]).abs() < 0.2), "{ends:?}");
            assert!(!svg.contains("a < b") && !svg.contains("NaN") && svg.contains(">0</text>"), "{svg}");
        }
        assert_eq!(histogram(WIDE, Titles { chart: "t", x: "x", y: "y" }, &[]), "", "nothing to draw");
    }
}
