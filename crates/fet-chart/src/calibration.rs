//! Predicted probabilities against observed frequencies: [`calibration`].

use std::fmt::Write;

use super::frame::Frame;
use super::scale::Scale;
use super::signs::{curve, sign};
use super::{Series, Size, Titles};

/// Curve of each series in front of the curves of its seeds, from 0 to 1, and the diagonal of perfect calibration. Markers show the
/// points of the curve; `said` holds their tooltips.
pub fn calibration(size: Size, titles: Titles<'_>, series: &[Series], said: &[String]) -> String {
    let Some(scale) = Scale::spanning([0.0, 1.0].into_iter()) else { return String::new() };
    if series.iter().all(|series| series.curve.is_empty()) {
        return String::new();
    }
    let frame = Frame::new(size, scale, titles);
    let at = |value: f64| frame.x(&scale, value);
    let mut svg = frame.begin_plane(&scale);
    let _ = write!(
        svg,
        r#"<path class="base" d="M{:.1} {:.1}L{:.1} {:.1}"/>"#,
        at(0.0),
        frame.y(0.0),
        at(1.0),
        frame.y(1.0)
    );
    for one in series {
        let (group, points) = curve(one, |&(x, y)| (at(x), frame.y(y)));
        svg.push_str(&group);
        for (index, &(x, y)) in points.iter().enumerate() {
            svg.push_str(&sign(one.number, x, y, said.get(index).map_or("", String::as_str)));
        }
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::super::{NARROW, WIDE};
    use super::*;

    #[test]
    fn chart_shows_the_whole_square() {
        let series = Series {
            curve: vec![(0.4, 0.45), (0.6, 0.5)],
            seeds: vec![vec![(0.4, 0.4), (0.6, 0.5)], vec![(0.4, 0.5), (0.6, 0.5)]],
            ..Series::default()
        };
        for size in [WIDE, NARROW] {
            let said = ["a < b".to_string()];
            let svg = calibration(
                size,
                Titles { chart: "t", x: "predicted", y: "observed" },
                std::slice::from_ref(&series),
                &said,
            );
            for tick in ["0", "1"] {
                assert_eq!(svg.matches(&format!(">{tick}</text>")).count(), 2, "{tick} in {svg}");
            }
            assert_eq!((svg.matches("polyline").count(), svg.matches("class=\"sign\"").count()), (3, 2));
            assert!(svg.contains("class=\"base\"") && svg.contains("a &lt; b"), "{svg}");
        }
        assert_eq!(
            calibration(WIDE, Titles { chart: "t", x: "x", y: "y" }, &[Series::default()], &[]),
            "",
            "nothing to draw"
        );
    }
}
