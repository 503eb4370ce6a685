//! Frame of a chart: outermost element, vertical scale and axis titles.

use std::fmt::Write;

use super::scale::Scale;
use super::text::escaped;
use super::{Size, Titles};

/// The frame of a chart with a vertical scale.
pub(crate) struct Frame<'a> {
    size: Size,
    scale: Scale,
    titles: Titles<'a>,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(size: Size, scale: Scale, titles: Titles<'a>) -> Self {
        let digits = scale.ticks(7).iter().map(|tick| scale.label(*tick).chars().count()).max().unwrap_or(1);
        let left = 14.0 + 7.5 * digits as f64;
        Self { size, scale, titles, left, right: size.width - 14.0, top: 30.0, bottom: size.height - 46.0 }
    }

    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.scale.share(value)
    }

    pub(crate) fn begin(&self) -> String {
        let mut svg = begin(self.size.width, self.size.height, self.titles.chart);
        for tick in self.scale.ticks(7) {
            let (y, left, right) = (self.y(tick), self.left, self.right);
            let _ = write!(svg, r#"<path class="grid" d="M{left:.1} {y:.1}H{right:.1}"/>"#);
            let (x, y, tick) = (left - 7.0, y + 4.0, self.scale.label(tick));
            let _ =
                write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="end">{tick}</text>"#);
        }
        let _ = write!(svg, r#"<text class="label" x="2" y="14">{}</text>"#, escaped(self.titles.y));
        svg
    }

    /// Returns the position of a number on the horizontal scale `across`.
    pub(crate) fn x(&self, across: &Scale, value: f64) -> f64 {
        self.left + self.width() * across.share(value)
    }

    /// Opens a chart with a horizontal scale.
    pub(crate) fn begin_plane(&self, across: &Scale) -> String {
        let count = (self.width() / 70.0).max(1.0) as usize;
        let ticks = ticks_below(across, count, (self.top, self.bottom), |value| self.x(across, value));
        self.begin() + &ticks + &self.x_title()
    }

    pub(crate) fn x_title(&self) -> String {
        let (x, y) = ((self.left + self.right) / 2.0, self.bottom + 38.0);
        format!(
            r#"<text class="label" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            escaped(self.titles.x)
        )
    }
}

/// Labels of a horizontal scale, each with a line up to `top`; `at` maps a number to its position.
pub(crate) fn ticks_below(
    scale: &Scale,
    count: usize,
    (top, bottom): (f64, f64),
    at: impl Fn(f64) -> f64,
) -> String {
    let mut svg = String::new();
    for tick in scale.ticks(count) {
        let at = at(tick);
        let _ = write!(svg, r#"<path class="grid" d="M{at:.1} {top}V{bottom:.1}"/>"#);
        let (y, tick) = (bottom + 17.0, scale.label(tick));
        let _ =
            write!(svg, r#"<text class="tick" x="{at:.1}" y="{y:.1}" text-anchor="middle">{tick}</text>"#);
    }
    svg
}

/// The opening tag of a chart.
pub(crate) fn begin(width: f64, height: f64, title: &str) -> String {
    let title = escaped(title);
    format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{title}">"#
    )
}
