//! Curves over counted steps, such as epochs: [`curves`].

use std::fmt::Write;

use super::frame::Frame;
use super::scale::Scale;
use super::signs::{curve, sign};
use super::{Series, Size, Titles};

/// One curve per series in front of the curves of its seeds.
pub fn curves(size: Size, titles: Titles<'_>, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| series.seeds.iter().flatten().chain(&series.curve));
    let Some(scale) = Scale::spanning(points().map(|point| point.1)) else { return String::new() };
    let last = points().map(|point| point.0).fold(1.0, f64::max);
    let frame = Frame::new(size, scale, titles);
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
    svg.push_str(&frame.x_title());
    for one in series {
        let (group, mean) = curve(one, |&(x, y)| (at(x), frame.y(y)));
        svg.push_str(&group);
        if let Some(&(x, y)) = mean.last() {
            svg.push_str(&sign(one.number, x, y, &one.name));
        }
        svg.push_str("</g>");
    }
    svg + "</svg>"
}
