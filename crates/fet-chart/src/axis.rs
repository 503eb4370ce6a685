//! Values at named positions with a vertical scale: [`axis`] and [`amounts`].

use std::fmt::Write;

use super::frame::Frame;
use super::scale::Scale;
use super::signs::{diamond, group, line, sign};
use super::text::escaped;
use super::{Mark, Series, Size, Titles};

/// Series over the values of an axis, evenly spaced, with error bars.
pub fn axis(size: Size, titles: Titles<'_>, ticks: &[String], series: &[Series]) -> String {
    let Some(scale) = Scale::spanning(values(series)) else { return String::new() };
    draw(&Frame::new(size, scale, titles), ticks, series, true)
}

/// Amounts at unordered positions: no line joins them, and the scale includes 0.
pub fn amounts(size: Size, titles: Titles<'_>, ticks: &[String], series: &[Series]) -> String {
    if values(series).next().is_none() {
        return String::new();
    }
    let Some(scale) = Scale::spanning(values(series).chain([0.0])) else { return String::new() };
    draw(&Frame::new(size, scale, titles), ticks, series, false)
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|series| &series.marks).flat_map(Mark::extent)
}

fn draw(frame: &Frame<'_>, ticks: &[String], series: &[Series], joined: bool) -> String {
    let place = |place: usize| frame.left + frame.width() * (place as f64 + 0.5) / ticks.len() as f64;
    let mut svg = frame.begin();
    // A narrow picture shows only the labels that fit.
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
    svg.push_str(&frame.x_title());
    for (index, one) in series.iter().enumerate() {
        // A small offset between series keeps their error bars visible.
        let shift = (index as f64 - (series.len() - 1) as f64 / 2.0) * (7.0_f64).min(frame.width() / 60.0);
        let x = |mark: &Mark| place(mark.place) + shift;
        svg.push_str(&group(one.number));
        if joined {
            let points: Vec<_> = one.marks.iter().map(|mark| (x(mark), frame.y(mark.mean))).collect();
            svg.push_str(&line("curve", &points));
        }
        for mark in &one.marks {
            svg.push_str(&bar(frame, one.number, x(mark), mark));
        }
        svg.push_str("</g>");
    }
    svg + "</svg>"
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
