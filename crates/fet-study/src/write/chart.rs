//! SVG charts: values with error bars along an axis, variants as dots, learning curves.
//!
//! No library is used, because a chart takes its colours from the page (light, dark, print), is drawn twice (for wide
//! and narrow screens), and its series can be switched off. It does not decide what is compared.

mod scale;

use std::fmt::Write;

use scale::Scale;

/// A chart's width, in CSS pixels, and the sizes that depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Space for the names of variants beside the chart; 0 if they are above their dots.
    pub(super) names: f64,
}

/// For desktop screens and paper.
pub(super) const WIDE: Size = Size { width: 940.0, height: 360.0, names: 250.0 };
/// For phones.
pub(super) const NARROW: Size = Size { width: 350.0, height: 260.0, names: 0.0 };

/// A value with its spread.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    /// The position on the axis, from 0.
    pub(super) place: usize,
    pub(super) mean: f64,
    /// Half the width of the interval.
    pub(super) half_width: Option<f64>,
    /// Single seeds.
    pub(super) seeds: Vec<f64>,
    /// A figure of others.
    pub(super) paper: Option<f64>,
    /// What is said of it.
    pub(super) title: String,
}

/// Marks or a curve that belong together.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// Its index, which determines colour and marker.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) marks: Vec<Mark>,
    /// Points (x, y) of the mean.
    pub(super) curve: Vec<(f64, f64)>,
    /// Points of each seed.
    pub(super) seeds: Vec<Vec<(f64, f64)>>,
}

/// Colours and markers repeat after this many series.
pub(super) const COLOURS: usize = 8;

/// Series over the values of an axis, evenly spaced, with error bars.
pub(super) fn axis(size: Size, title: &str, ticks: &[String], x: &str, y: &str, series: &[Series]) -> String {
    let marks = || series.iter().flat_map(|series| &series.marks);
    let Some(scale) = Scale::of(marks().flat_map(extent)) else { return String::new() };
    let frame = Frame::new(size, scale, title, y);
    let place = |place: usize| frame.left + frame.width() * (place as f64 + 0.5) / ticks.len() as f64;
    let mut svg = frame.begin();
    // On a narrow picture, as many labels as there is room for.
    let longest = ticks.iter().map(|tick| tick.chars().count()).max().unwrap_or(1) as f64;
    let room = (frame.width() / (8.0 * longest + 10.0)).max(1.0) as usize;
    let every = ticks.len().div_ceil(room.max(1));
    for (index, tick) in ticks.iter().enumerate().filter(|(index, _)| index % every == 0) {
        let (x, y) = (place(index), frame.bottom + 18.0);
        let _ = write!(
            svg,
            r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            escaped(tick)
        );
    }
    svg.push_str(&frame.x_title(x));
    for (index, one) in series.iter().enumerate() {
        // Series stand a little beside each other, so that error bars do not hide one another.
        let shift = (index as f64 - (series.len() - 1) as f64 / 2.0) * (7.0_f64).min(frame.width() / 60.0);
        let x = |mark: &Mark| place(mark.place) + shift;
        let _ = write!(svg, r#"<g class="s{}" data-series="{}">"#, one.number % COLOURS, one.number);
        let points: Vec<(f64, f64)> = one.marks.iter().map(|mark| (x(mark), frame.y(mark.mean))).collect();
        svg.push_str(&line("curve", &points));
        for mark in &one.marks {
            svg.push_str(&bar(&frame, one.number, x(mark), mark));
        }
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

/// A row for each variant: seeds, mean, interval, published figures; a line through the base's mean.
pub(super) fn dots(size: Size, title: &str, x: &str, series: &[Series], base: Option<f64>) -> String {
    let marks = || series.iter().flat_map(|series| &series.marks);
    let Some(scale) = Scale::of(marks().flat_map(extent)) else { return String::new() };
    let row = if size.names > 0.0 { 34.0 } else { 46.0 };
    let (left, right, top) = (size.names + 12.0, size.width - 12.0, 8.0);
    let bottom = top + row * series.len() as f64 + 4.0;
    let height = bottom + 46.0;
    let at = |value: f64| left + (right - left) * scale.share(value);
    let mut svg = begin(size.width, height, title);
    for tick in scale.ticks(if size.names > 0.0 { 6 } else { 4 }) {
        let at = at(tick);
        let _ = write!(svg, r#"<path class="grid" d="M{at:.1} {top}V{bottom:.1}"/>"#);
        let (y, tick) = (bottom + 17.0, scale.label(tick));
        let _ =
            write!(svg, r#"<text class="tick" x="{at:.1}" y="{y:.1}" text-anchor="middle">{tick}</text>"#);
    }
    let (middle, y) = ((left + right) / 2.0, bottom + 38.0);
    let _ = write!(
        svg,
        r#"<text class="label" x="{middle:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
        escaped(x)
    );
    if let Some(base) = base {
        let _ = write!(svg, r#"<path class="base" d="M{:.1} {top}V{bottom:.1}"/>"#, at(base));
    }
    for (index, one) in series.iter().enumerate() {
        let Some(mark) = one.marks.first() else { continue };
        let middle = top + row * (index as f64 + 0.5) + if size.names > 0.0 { 0.0 } else { 9.0 };
        let (x, y, anchor) =
            if size.names > 0.0 { (size.names, middle + 4.0, "end") } else { (12.0, middle - 14.0, "start") };
        let room = if size.names > 0.0 { 36 } else { 46 };
        let name = escaped(&shortened(&one.name, room));
        let _ =
            write!(svg, r#"<text class="name" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{name}</text>"#);
        let _ = write!(svg, r#"<g class="s{}" data-series="{}">"#, one.number % COLOURS, one.number);
        if mark.mean.is_finite() {
            if let Some(half) = mark.half_width {
                let (low, high) = (at(mark.mean - half), at(mark.mean + half));
                let _ = write!(
                    svg,
                    r#"<path class="bar" d="M{low:.1} {middle:.1}H{high:.1}M{low:.1} {0:.1}v8M{high:.1} {0:.1}v8"/>"#,
                    middle - 4.0
                );
            }
            for seed in &mark.seeds {
                let _ =
                    write!(svg, r#"<circle class="seed" cx="{:.1}" cy="{middle:.1}" r="3.5"/>"#, at(*seed));
            }
            svg.push_str(&sign(one.number, at(mark.mean), middle, &mark.title));
        } else {
            let x = left + 4.0;
            let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{:.1}">no result</text>"#, middle + 4.0);
        }
        if let Some(paper) = mark.paper {
            svg.push_str(&diamond(at(paper), middle));
        }
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

/// A curve for each series, with its seeds behind it.
pub(super) fn curves(size: Size, title: &str, x: &str, y: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| series.seeds.iter().flatten().chain(&series.curve));
    let Some(scale) = Scale::of(points().map(|point| point.1)) else { return String::new() };
    let last = points().map(|point| point.0).fold(1.0, f64::max);
    let frame = Frame::new(size, scale, title, y);
    let at =
        |value: f64| frame.left + frame.width() * if last > 1.0 { (value - 1.0) / (last - 1.0) } else { 0.5 };
    let mut svg = frame.begin();
    let steps = (last - 1.0).max(1.0);
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    let step = step.into_iter().find(|step| steps / step <= frame.width() / 70.0).unwrap_or(steps);
    let ticks =
        std::iter::once(1.0).chain((1..).map(|n| f64::from(n) * step).take_while(|tick| *tick <= last));
    for tick in ticks.filter(|tick| *tick == 1.0 || *tick > 1.5) {
        if tick != 1.0 && at(tick) - at(1.0) < 24.0 {
            continue;
        }
        let (x, y) = (at(tick), frame.bottom + 18.0);
        let _ =
            write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="middle">{tick:.0}</text>"#);
    }
    svg.push_str(&frame.x_title(x));
    for one in series {
        let _ = write!(svg, r#"<g class="s{}" data-series="{}">"#, one.number % COLOURS, one.number);
        let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().map(|&(x, y)| (at(x), frame.y(y))).collect()
        };
        for seed in one.seeds.iter().filter(|_| one.seeds.len() > 1) {
            svg.push_str(&line("thin", &place(seed)));
        }
        let mean = place(&one.curve);
        svg.push_str(&line("curve", &mean));
        if let Some(&(x, y)) = mean.last() {
            svg.push_str(&sign(one.number, x, y, &one.name));
        }
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

/// The marker of a series, for legends.
pub(super) fn swatch(number: usize) -> String {
    let class = number % COLOURS;
    let sign = sign(number, 8.0, 7.0, "");
    format!(
        r#"<svg class="swatch" width="16" height="14" viewBox="0 0 16 14" aria-hidden="true"><g class="s{class}">{sign}</g></svg>"#
    )
}

/// The frame of a chart with a vertical scale.
struct Frame<'a> {
    size: Size,
    scale: Scale,
    title: &'a str,
    y_title: &'a str,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl<'a> Frame<'a> {
    fn new(size: Size, scale: Scale, title: &'a str, y_title: &'a str) -> Self {
        let digits = scale.ticks(7).iter().map(|tick| scale.label(*tick).chars().count()).max().unwrap_or(1);
        let left = 14.0 + 7.5 * digits as f64;
        Self {
            size,
            scale,
            title,
            y_title,
            left,
            right: size.width - 14.0,
            top: 30.0,
            bottom: size.height - 46.0,
        }
    }

    fn width(&self) -> f64 {
        self.right - self.left
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.scale.share(value)
    }

    fn begin(&self) -> String {
        let mut svg = begin(self.size.width, self.size.height, self.title);
        for tick in self.scale.ticks(7) {
            let (y, left, right) = (self.y(tick), self.left, self.right);
            let _ = write!(svg, r#"<path class="grid" d="M{left:.1} {y:.1}H{right:.1}"/>"#);
            let (x, y, tick) = (left - 7.0, y + 4.0, self.scale.label(tick));
            let _ =
                write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="end">{tick}</text>"#);
        }
        let _ = write!(svg, r#"<text class="label" x="2" y="14">{}</text>"#, escaped(self.y_title));
        svg
    }

    fn x_title(&self, text: &str) -> String {
        let (x, y) = ((self.left + self.right) / 2.0, self.bottom + 38.0);
        format!(r#"<text class="label" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#, escaped(text))
    }
}

/// All values of a mark that the scale must include.
fn extent(mark: &Mark) -> Vec<f64> {
    let half = mark.half_width.unwrap_or(0.0);
    let mut all = vec![mark.mean - half, mark.mean + half];
    all.extend(&mark.seeds);
    all.extend(mark.paper);
    all
}

fn bar(frame: &Frame<'_>, number: usize, x: f64, mark: &Mark) -> String {
    let mut svg = String::new();
    if let Some(half) = mark.half_width {
        let (low, high) = (frame.y(mark.mean - half), frame.y(mark.mean + half));
        let left = x - 4.0;
        let _ = write!(
            svg,
            r#"<path class="bar" d="M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}h8M{left:.1} {high:.1}h8"/>"#
        );
    }
    for seed in &mark.seeds {
        let _ = write!(svg, r#"<circle class="seed" cx="{x:.1}" cy="{:.1}" r="2.5"/>"#, frame.y(*seed));
    }
    svg.push_str(&sign(number, x, frame.y(mark.mean), &mark.title));
    if let Some(paper) = mark.paper {
        svg.push_str(&diamond(x, frame.y(paper)));
    }
    svg
}

/// Series differ in shape as well as in colour, so that the chart is readable on paper and by the colour-blind.
fn sign(number: usize, x: f64, y: f64, title: &str) -> String {
    let path = match number % 4 {
        0 => format!("M{:.1} {y:.1}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z", x - 5.0),
        1 => format!("M{:.1} {:.1}h9v9h-9Z", x - 4.5, y - 4.5),
        2 => format!("M{x:.1} {:.1}l5.5 10h-11Z", y - 6.0),
        _ => format!("M{x:.1} {:.1}l5.5 -10h-11Z", y + 6.0),
    };
    format!(r#"<path class="sign" d="{path}"><title>{}</title></path>"#, escaped(title))
}

/// A figure of others.
fn diamond(x: f64, y: f64) -> String {
    format!(
        r#"<path class="paper" d="M{x:.1} {:.1}l6 6l-6 6l-6 -6Z"><title>from the paper</title></path>"#,
        y - 6.0
    )
}

fn line(class: &str, points: &[(f64, f64)]) -> String {
    if points.len() < 2 {
        return String::new();
    }
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!(r#"<polyline class="{class}" points="{}"/>"#, points.join(" "))
}

fn begin(width: f64, height: f64, title: &str) -> String {
    let title = escaped(title);
    format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{title}">"#
    )
}

fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_string();
    }
    text.chars().take(room - 1).collect::<String>().trim_end().to_string() + "…"
}

/// Text escaped for HTML and SVG.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_hold_every_series_and_no_number_that_is_none() {
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
                (axis(size, "t", &ticks, "K", "RMSE", &series), 3, 3),
                (dots(size, "t", "RMSE", &with_broken, Some(0.5)), 4, 3),
                (curves(size, "t", "epoch", "RMSE", &series), 3, 0),
            ];
            for (svg, groups, papers) in pictures {
                assert_eq!(svg.matches("data-series=").count(), groups, "{svg}");
                assert_eq!(svg.matches("class=\"paper\"").count(), papers, "{svg}");
                assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("a < b"), "{svg}");
                assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
            }
        }
        assert_eq!(axis(WIDE, "t", &ticks, "K", "RMSE", &[]), "", "nothing to draw");
    }
}
