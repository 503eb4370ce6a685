//! SVG charts: values with error bars along an axis, variants as dots, curves, amounts, points and circles on a plane, shaded
//! cells, calibration curves and histograms.
//!
//! The crate draws charts itself because a chart takes its colours from the page (light, dark, print), exists in several sizes, and
//! lets readers hide series. A chart is an element for a page with the [`page_style`]; [`Picture`] combines charts in one file.

mod axis;
mod bubbles;
mod calibration;
mod curves;
mod dots;
mod frame;
mod heat;
mod histogram;
mod picture;
mod points;
mod scale;
mod signs;
mod style;
mod text;

pub use axis::{amounts, axis};
pub use bubbles::{Bubble, bubbles};
pub use calibration::calibration;
pub use curves::curves;
pub use dots::dots;
pub use heat::heat;
pub use histogram::{Bar, histogram};
pub use picture::{Panel, Picture};
pub use points::{Point, points};
pub use signs::swatch;
pub use style::page as page_style;

/// A chart's size, in CSS pixels.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Width of the chart.
    pub width: f64,
    /// Height of the chart; [`dots`] and [`heat`] ignore it and use the height of their rows.
    pub height: f64,
    /// Width of the column for variants' names; 0 if the names are above their dots.
    pub names: f64,
}

/// Titles of a chart and of its axes.
#[derive(Debug, Clone, Copy)]
pub struct Titles<'a> {
    /// Title of the chart, for screen readers.
    pub chart: &'a str,
    /// Title of the horizontal axis.
    pub x: &'a str,
    /// Title of the vertical axis.
    pub y: &'a str,
}

/// For desktop screens and paper.
pub const WIDE: Size = Size { width: 940.0, height: 360.0, names: 250.0 };
/// For phones.
pub const NARROW: Size = Size { width: 350.0, height: 260.0, names: 0.0 };

/// A value with its spread.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    /// The position on the axis, from 0.
    pub place: usize,
    /// The value.
    pub mean: f64,
    /// Half the width of the interval.
    pub half_width: Option<f64>,
    /// Single seeds.
    pub seeds: Vec<f64>,
    /// Published figure.
    pub paper: Option<f64>,
    /// Tooltip.
    pub title: String,
}

impl Mark {
    /// All values that the scale must include.
    fn extent(&self) -> Vec<f64> {
        let half = self.half_width.unwrap_or(0.0);
        let mut all = vec![self.mean - half, self.mean + half];
        all.extend(&self.seeds);
        all.extend(self.paper);
        all
    }
}

/// Marks or a curve that belong together.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its index, which determines colour and marker.
    pub number: usize,
    /// Its name in tooltips and next to [`dots`].
    pub name: String,
    /// Its values, for [`axis`], [`amounts`] and [`dots`].
    pub marks: Vec<Mark>,
    /// Points (x, y) of the mean, for [`curves`] and [`calibration`].
    pub curve: Vec<(f64, f64)>,
    /// Points of each seed.
    pub seeds: Vec<Vec<(f64, f64)>>,
}

/// Colours and markers repeat after this many series.
pub const COLOURS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_contain_every_series_and_no_nan() {
        let mark = |place: usize, mean: f64| Mark {
            place,
            mean,
            half_width: Some(0.1),
            seeds: vec![mean - 0.05, mean + 0.05],
            paper: (place == 0).then_some(0.4),
            title: "a < b".to_string(),
        };
        let series = |number: usize| Series {
            number,
            name: format!("variant <{number}>"),
            marks: vec![mark(0, 0.5), mark(1, 0.6)],
            curve: vec![(1.0, 0.1), (2.0, 0.5)],
            seeds: vec![vec![(1.0, 0.0), (2.0, 0.4)], vec![(1.0, 0.2), (2.0, 0.6)]],
        };
        let series: Vec<Series> = (0..3).map(series).collect();
        let broken = Series {
            number: 3,
            name: "none".into(),
            marks: vec![Mark { mean: f64::NAN, ..Mark::default() }],
            ..Series::default()
        };
        let with_broken = [series.clone(), vec![broken]].concat();
        let ticks = ["1".to_string(), "2".to_string()];
        for size in [WIDE, NARROW] {
            let pictures = [
                (axis(size, Titles { chart: "t", x: "K", y: "RMSE" }, &ticks, &series), 3, 3),
                (dots(size, "t", "RMSE", &with_broken, Some(0.5)), 4, 3),
                (curves(size, Titles { chart: "t", x: "epoch", y: "RMSE" }, &series), 3, 0),
            ];
            for (svg, groups, papers) in pictures {
                assert_eq!(svg.matches("data-series=").count(), groups, "{svg}");
                assert_eq!(svg.matches("class=\"paper\"").count(), papers, "{svg}");
                assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("a < b"), "{svg}");
                assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
            }
        }
        assert_eq!(axis(WIDE, Titles { chart: "t", x: "K", y: "RMSE" }, &ticks, &[]), "", "nothing to draw");
        assert_eq!(
            amounts(WIDE, Titles { chart: "t", x: "party", y: "distance" }, &ticks, &[]),
            "",
            "nothing to draw"
        );
    }

    #[test]
    fn the_scale_of_dots_includes_the_base() {
        let mark = |mean: f64| Mark { mean, ..Mark::default() };
        let series: Vec<Series> =
            [2.2, 8.1].map(|mean| Series { marks: vec![mark(mean)], ..Series::default() }).into();
        let svg = dots(WIDE, "t", "RMSE", &series, Some(0.0));
        let (_, base) = svg.split_once(r#"class="base" d="M"#).expect("a base");
        let x: f64 = base.split(' ').next().expect("a place").parse().expect("a number");
        assert!((WIDE.names..WIDE.width).contains(&x), "{x} in {svg}");
    }

    #[test]
    fn amounts_are_not_connected_and_include_zero() {
        let mark = |place: usize| Mark { place, mean: 5.0, ..Mark::default() };
        let series = Series { marks: vec![mark(0), mark(1)], ..Series::default() };
        let ticks = ["1".to_string(), "2".to_string()];
        let series = [series];
        let joined = axis(NARROW, Titles { chart: "t", x: "party", y: "distance" }, &ticks, &series);
        let apart = amounts(NARROW, Titles { chart: "t", x: "party", y: "distance" }, &ticks, &series);
        assert!(joined.contains("polyline") && !joined.contains(">0</text>"), "{joined}");
        assert!(!apart.contains("polyline") && apart.contains(">0</text>"), "{apart}");
    }

    #[test]
    fn picture_is_a_file_and_text_stays_in_its_frame() {
        let bubble = Bubble { at: (1.0, 2.0), radius: 5.0, title: "a < b".into() };
        let chart = bubbles(NARROW, Titles { chart: "t", x: "x", y: "y" }, &[bubble], ((0.0, 0.0), "own"));
        let panel = |title: &str| Panel { title: title.into(), size: NARROW, chart: chart.clone() };
        let names = (0..12).map(|number| (number, format!("a run with quite a long name, {number}")));
        let picture = Picture {
            title: "a < b".into(),
            panels: vec![panel("one"), panel("two"), panel(&"long ".repeat(40))],
            columns: 2,
            legend: names.collect(),
            caption: "many words ".repeat(30),
        };
        let svg = picture.svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(!svg.contains("a < b") && !svg.contains("NaN"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
        let size = |name: &str| -> f64 {
            let text = svg.split(&format!(" {name}=\"")).nth(1).expect(name);
            text.split('"').next().expect(name).parse().expect("a number")
        };
        let (width, height) = (size("width"), size("height"));
        for text in svg.split(r#"<text class=""#).skip(1).filter(|text| !text.starts_with("tick")) {
            let part = |from: &str, to: &str| text.split(from).nth(1)?.split(to).next();
            let number =
                |name: &str| part(&format!(" {name}=\""), "\"").expect(name).parse::<f64>().expect(name);
            let long = part(">", "<").expect("text").chars().count() as f64;
            assert!(number("x") + 6.5 * long <= width && number("y") < height, "{text}");
        }
    }
}
