//! Named points on a plane with horizontal and vertical error bars: [`points`].

use std::fmt::Write;

use super::frame::Frame;
use super::scale::Scale;
use super::signs::{group, line, sign};
use super::text::{escaped, shortened};
use super::{Size, Titles};

/// A named point.
#[derive(Debug, Clone, Default)]
pub struct Point {
    /// Its index, which determines colour and marker.
    pub number: usize,
    /// Its name, shown next to the point if there is room.
    pub name: String,
    /// Its position (x, y), in the units of the axes.
    pub at: (f64, f64),
    /// The ends of its horizontal bar.
    pub across: Option<(f64, f64)>,
    /// The ends of its vertical bar.
    pub up: Option<(f64, f64)>,
    /// Single seeds (x, y).
    pub seeds: Vec<(f64, f64)>,
    /// Tooltip.
    pub title: String,
}

/// A box in the chart: left, top, right, bottom.
type Area = [f64; 4];

/// Upper bound on the width of the font's usual characters, and the height of a line.
const CHARACTER: f64 = 7.0;
const LINE: f64 = 15.0;

/// Points over the range `span` of the horizontal axis. Names never cover each other or a marker; a name without room appears only
/// in the legend.
pub fn points(size: Size, titles: Titles<'_>, span: (f64, f64), points: &[Point]) -> String {
    let points: Vec<&Point> =
        points.iter().filter(|point| point.at.0.is_finite() && point.at.1.is_finite()).collect();
    let heights = points.iter().flat_map(|point| {
        let bar = point.up.map_or([point.at.1; 2], |(low, high)| [low, high]);
        bar.into_iter().chain([point.at.1]).chain(point.seeds.iter().map(|seed| seed.1))
    });
    let (Some(up), Some(across)) = (Scale::spanning(heights), Scale::spanning([span.0, span.1].into_iter()))
    else {
        return String::new();
    };
    let frame = Frame::new(size, up, titles);
    let at = |value: f64| frame.x(&across, value);
    let mut svg = frame.begin_plane(&across);
    // Bars are below markers and names; a name crosses a bar only if there is no other room.
    let mut bars: Vec<Area> = Vec::new();
    for point in &points {
        svg.push_str(&group(point.number));
        let (x, y) = (at(point.at.0), frame.y(point.at.1));
        if let Some((low, high)) = point.across {
            let (low, high, top) = (at(low), at(high), y - 4.0);
            bars.push([low, y - 2.0, high, y + 2.0]);
            let _ = write!(
                svg,
                r#"<path class="bar" d="M{low:.1} {y:.1}H{high:.1}M{low:.1} {top:.1}v8M{high:.1} {top:.1}v8"/>"#
            );
        }
        if let Some((low, high)) = point.up {
            let (low, high, left) = (frame.y(low), frame.y(high), x - 4.0);
            bars.push([x - 2.0, high, x + 2.0, low]);
            let _ = write!(
                svg,
                r#"<path class="bar" d="M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}h8M{left:.1} {high:.1}h8"/>"#
            );
        }
        for seed in &point.seeds {
            let (x, y) = (at(seed.0), frame.y(seed.1));
            let _ = write!(svg, r#"<circle class="seed" cx="{x:.1}" cy="{y:.1}" r="2.5"/>"#);
        }
        svg.push_str("</g>");
    }
    let places: Vec<(f64, f64)> = points.iter().map(|point| (at(point.at.0), frame.y(point.at.1))).collect();
    let mut taken: Vec<Area> = places.iter().map(|&(x, y)| [x - 7.0, y - 7.0, x + 7.0, y + 7.0]).collect();
    for (point, &(x, y)) in points.iter().zip(&places) {
        svg.push_str(&group(point.number));
        let name = shortened(&point.name, (0.6 * frame.width() / CHARACTER).max(2.0) as usize);
        let wide = CHARACTER * name.chars().count() as f64;
        let clear = [taken.as_slice(), bars.as_slice()].concat();
        let area = room(&frame, (x, y), wide, &clear).or_else(|| room(&frame, (x, y), wide, &taken));
        if let Some(area) = area {
            taken.push(area);
            let (left, base) = (area[0] + 1.0, area[3] - 4.0);
            // A line joins a distant name to its point.
            if (base - 4.0 - y).abs() > LINE {
                let end = if area[0] > x { area[0] } else { area[2] };
                svg.push_str(&line("thin", &[(x, y), (end, base - 4.0)]));
            }
            let name = escaped(&name);
            for class in ["halo", "name"] {
                let _ = write!(svg, r#"<text class="{class}" x="{left:.1}" y="{base:.1}">{name}</text>"#);
            }
        }
        svg.push_str(&sign(point.number, x, y, &point.title));
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

/// Finds the nearest free room for a name: right or left of the point, then at growing distance above and below.
fn room(frame: &Frame<'_>, (x, y): (f64, f64), wide: f64, taken: &[Area]) -> Option<Area> {
    let (left, right) = (x - 10.0 - wide, x + 10.0);
    let steps = (0..14).flat_map(|step| [-f64::from(step), f64::from(step)]);
    let areas = steps.flat_map(|step| {
        let top = y - LINE / 2.0 + 0.65 * step * LINE;
        [right, left].map(|left| [left, top, left + wide, top + LINE])
    });
    let is_inside = |area: &Area| {
        area[0] >= frame.left
            && area[2] <= frame.right
            && area[1] >= frame.top - LINE / 2.0
            && area[3] <= frame.bottom
    };
    let is_free = |area: &Area| {
        taken.iter().all(|other| {
            area[0] >= other[2] || area[2] <= other[0] || area[1] >= other[3] || area[3] <= other[1]
        })
    };
    areas.into_iter().filter(is_inside).find(is_free)
}

#[cfg(test)]
mod tests {
    use super::super::{NARROW, WIDE};
    use super::*;

    fn point(number: usize, x: f64, y: f64) -> Point {
        Point {
            number,
            name: format!("a defence, {number}"),
            at: (x, y),
            across: Some((x - 0.1, x + 0.1)),
            up: Some((y - 2.0, y + 2.0)),
            seeds: vec![(x, y - 1.0), (x, y + 1.0)],
            title: "a < b".into(),
        }
    }

    /// The boxes of all names, and how many there are.
    fn names(svg: &str) -> Vec<Area> {
        let parse = |text: &str| {
            let number = |name: &str| -> f64 {
                let value = text.split(&format!(" {name}=\"")).nth(1).expect(name);
                value.split('"').next().expect(name).parse().expect("a number")
            };
            let long = text.split(['>', '<']).nth(1).expect("text").chars().count() as f64;
            let (x, y) = (number("x"), number("y"));
            [x, y - 10.0, x + 6.5 * long, y + 3.0]
        };
        svg.split(r#"<text class="name""#).skip(1).map(parse).collect()
    }

    /// The height of each point's horizontal bar.
    fn bar_heights(svg: &str) -> Vec<f64> {
        let paths = svg.split(r#"<path class="bar" d=""#).skip(1).filter_map(|path| path.split('"').next());
        let across = paths.filter_map(|path| path.strip_prefix('M')?.split_once('H'));
        across.map(|(start, _)| start.split(' ').nth(1).expect("y").parse().expect("a number")).collect()
    }

    #[test]
    fn names_are_next_to_their_points_without_overlap() {
        // Six at one position, two at the right end with room only on their left, and one alone.
        let all = [
            (0.5, 90.0),
            (0.5, 90.0),
            (0.5, 90.0),
            (0.5, 90.0),
            (0.5, 90.0),
            (0.5, 90.0),
            (1.0, 95.0),
            (1.0, 94.9),
            (0.0, 60.0),
        ];
        let all: Vec<Point> = all.iter().enumerate().map(|(number, &(x, y))| point(number, x, y)).collect();
        for size in [WIDE, NARROW] {
            let svg = points(size, Titles { chart: "t", x: "leakage", y: "accuracy" }, (0.0, 1.0), &all);
            let names = names(&svg);
            assert_eq!(names.len(), all.len(), "{svg}");
            for (index, one) in names.iter().enumerate() {
                assert!(one[0] > 0.0 && one[2] < size.width && one[3] < size.height, "{one:?} in {svg}");
                for other in &names[..index] {
                    let apart =
                        one[0] >= other[2] || one[2] <= other[0] || one[1] >= other[3] || one[3] <= other[1];
                    assert!(apart, "{one:?} and {other:?} in {svg}");
                }
            }
            assert!(svg.contains("polyline"), "a name apart is joined to its point: {svg}");
            // The last point is alone, so its name crosses no bar.
            let (last, bar) = (names[names.len() - 1], bar_heights(&svg)[names.len() - 1]);
            assert!(last[3] <= bar || last[1] >= bar, "{last:?} and {bar} in {svg}");
            assert_eq!(
                (svg.matches("class=\"bar\"").count(), svg.matches("class=\"seed\"").count()),
                (18, 18)
            );
            assert!(!svg.contains("NaN") && !svg.contains("a < b"), "{svg}");
        }
    }

    #[test]
    fn axis_covers_the_whole_span() {
        let svg = points(
            WIDE,
            Titles { chart: "t", x: "leakage", y: "accuracy" },
            (0.0, 1.0),
            &[point(0, 0.4, 90.0)],
        );
        for tick in ["0", "0.2", "0.8", "1"] {
            assert!(svg.contains(&format!(">{tick}</text>")), "{tick} in {svg}");
        }
        let none = Point { at: (f64::NAN, 1.0), ..point(1, 0.0, 0.0) };
        let svg =
            points(WIDE, Titles { chart: "t", x: "x", y: "y" }, (0.0, 1.0), &[point(0, 0.4, 90.0), none]);
        assert_eq!(svg.matches("class=\"name\"").count(), 1, "a point without room is missing: {svg}");
        assert_eq!(
            points(WIDE, Titles { chart: "t", x: "x", y: "y" }, (0.0, 1.0), &[]),
            "",
            "nothing to draw"
        );
    }
}
