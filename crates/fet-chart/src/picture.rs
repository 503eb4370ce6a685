//! Picture file with several charts, their titles, a legend and a caption.

use std::fmt::Write;

use super::signs::sign;
use super::text::{escaped, shortened, wrapped};
use super::{COLOURS, Size, style};

/// A chart in a picture.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Title above the chart.
    pub title: String,
    /// Size of the chart.
    pub size: Size,
    /// SVG element from a function of this crate.
    pub chart: String,
}

/// Charts of one width, row by row.
#[derive(Debug, Clone)]
pub struct Picture {
    /// Description for screen readers.
    pub title: String,
    /// The charts.
    pub panels: Vec<Panel>,
    /// Number of charts per row.
    pub columns: usize,
    /// The number and the name of each series.
    pub legend: Vec<(usize, String)>,
    /// Caption below the charts; may be empty.
    pub caption: String,
}

const EDGE: f64 = 12.0;
const TITLE: f64 = 30.0;
const LINE: f64 = 20.0;
/// Upper bound on the width of the font's usual characters.
const CHARACTER: f64 = 7.0;

impl Picture {
    /// Text of the SVG file, with the background of the theme.
    pub fn svg(&self) -> String {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let across = self.panels.first().map_or(300.0, |panel| panel.size.width);
        let width = 2.0 * EDGE + columns as f64 * across + (columns - 1) as f64 * EDGE;
        let mut body = String::new();
        let mut y = EDGE;
        for row in self.panels.chunks(columns) {
            for (column, panel) in row.iter().enumerate() {
                let x = EDGE + column as f64 * (across + EDGE);
                let title = escaped(&shortened(&panel.title, (across / (1.15 * CHARACTER)) as usize));
                let _ = write!(body, r#"<text class="title" x="{x:.1}" y="{:.1}">{title}</text>"#, y + 16.0);
                let _ = write!(body, r#"<g transform="translate({x:.1} {:.1})">"#, y + TITLE);
                body.push_str(&panel.chart);
                body.push_str("</g>");
            }
            y += TITLE + row.iter().map(|panel| panel.size.height).fold(0.0, f64::max) + EDGE;
        }
        y = self.draw_legend(&mut body, width, y);
        for line in wrapped(&self.caption, ((width - 2.0 * EDGE) / CHARACTER) as usize) {
            let line = escaped(&line);
            let _ = write!(body, r#"<text class="label" x="{EDGE}" y="{:.1}">{line}</text>"#, y + 12.0);
            y += LINE;
        }
        let (height, title, style) = (y + EDGE / 2.0, escaped(&self.title), style::file());
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{title}"><title>{title}</title><style>
{style}</style><rect class="ground" width="100%" height="100%"/>{body}</svg>
"#
        )
    }

    /// Draws the legend in as many lines as it needs; returns the position of its end.
    fn draw_legend(&self, body: &mut String, width: f64, top: f64) -> f64 {
        let (mut x, mut y) = (EDGE, top);
        let room = ((width - 2.0 * EDGE - 20.0) / CHARACTER) as usize;
        for (number, name) in &self.legend {
            let name = shortened(name, room);
            let wide = 36.0 + CHARACTER * name.chars().count() as f64;
            if x > EDGE && x + wide > width {
                (x, y) = (EDGE, y + LINE);
            }
            let (sign, text) = (sign(*number, x + 7.0, y + 8.0, ""), escaped(&name));
            let _ = write!(body, r#"<g class="s{}">{sign}</g>"#, number % COLOURS);
            let _ =
                write!(body, r#"<text class="name" x="{:.1}" y="{:.1}">{text}</text>"#, x + 20.0, y + 12.0);
            x += wide;
        }
        if self.legend.is_empty() { top } else { y + LINE }
    }
}
