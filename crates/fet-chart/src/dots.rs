//! One row of values per variant above a horizontal scale: [`dots`].

use std::fmt::Write;

use super::frame::{begin, ticks_below};
use super::scale::Scale;
use super::signs::{diamond, group, sign};
use super::text::{escaped, shortened};
use super::{Mark, Series, Size};

/// One row per variant: seeds, mean, interval and published figures, with a line through the mean of the base variant.
pub fn dots(size: Size, title: &str, x: &str, series: &[Series], base: Option<f64>) -> String {
    let marks = || series.iter().flat_map(|series| &series.marks);
    let Some(scale) = Scale::spanning(marks().flat_map(Mark::extent).chain(base)) else {
        return String::new();
    };
    let row = if size.names > 0.0 { 34.0 } else { 46.0 };
    let (left, right, top) = (size.names + 12.0, size.width - 12.0, 8.0);
    let bottom = top + row * series.len() as f64 + 4.0;
    let height = bottom + 46.0;
    let at = |value: f64| left + (right - left) * scale.share(value);
    let mut svg = begin(size.width, height, title);
    let count = if size.names > 0.0 { 6 } else { 4 };
    svg.push_str(&ticks_below(&scale, count, (top, bottom), at));
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
        svg.push_str(&group(one.number));
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
