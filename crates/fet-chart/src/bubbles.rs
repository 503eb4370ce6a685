//! Circles on a plane around a marked position: [`bubbles`].

use std::fmt::Write;

use super::frame::Frame;
use super::scale::Scale;
use super::text::escaped;
use super::{Size, Titles};

/// A circle.
#[derive(Debug, Clone)]
pub struct Bubble {
    /// Its centre (x, y), in the units of the axes.
    pub at: (f64, f64),
    /// Its radius, in CSS pixels.
    pub radius: f64,
    /// Tooltip.
    pub title: String,
}

/// Circles on a plane; a cross with the tooltip `what` marks the position `own`.
pub fn bubbles(
    size: Size,
    titles: Titles<'_>,
    bubbles: &[Bubble],
    (own, what): ((f64, f64), &str),
) -> String {
    let places = || bubbles.iter().map(|bubble| bubble.at).chain([own]);
    let across = Scale::spanning(places().map(|at| at.0));
    let Some((across, up)) = across.zip(Scale::spanning(places().map(|at| at.1))) else {
        return String::new();
    };
    let frame = Frame::new(size, up, titles);
    let at = |value: f64| frame.x(&across, value);
    let mut svg = frame.begin_plane(&across);
    svg.push_str(r#"<g class="s0">"#);
    for bubble in bubbles {
        let (x, y, title) = (at(bubble.at.0), frame.y(bubble.at.1), escaped(&bubble.title));
        let _ = write!(
            svg,
            r#"<circle class="bubble" cx="{x:.1}" cy="{y:.1}" r="{:.1}"><title>{title}</title></circle>"#,
            bubble.radius
        );
    }
    let (x, y, what) = (at(own.0) - 6.0, frame.y(own.1) - 6.0, escaped(what));
    let _ = write!(
        svg,
        r#"</g><path class="own" d="M{x:.1} {y:.1}l12 12m0 -12l-12 12"><title>{what}</title></path>"#
    );
    svg + "</svg>"
}
