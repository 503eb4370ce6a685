//! Counts of pairs, such as true and predicted classes, as shaded cells: [`heat`].

use std::fmt::Write;

use super::frame::begin;
use super::text::{escaped, shortened};
use super::{Size, Titles};

/// The sides of the largest and of the smallest cell.
const SIDES: (f64, f64) = (46.0, 3.0);
/// Upper bound on the width of the font's usual characters.
const CHARACTER: f64 = 7.5;
/// Height of a line of text.
const LINE: f64 = 15.0;
/// Maximum number of characters of a name.
const LONGEST: usize = 14;

/// Matrix `cells[row][column]` with one row and one column per name.
///
/// The colour of a cell shows its share of the row. Cells show their numbers if all numbers fit. `titles.y` is the title of the rows,
/// `titles.x` of the columns. The chart takes the height that it needs.
pub fn heat(size: Size, titles: Titles<'_>, names: &[String], cells: &[Vec<f64>]) -> String {
    if names.is_empty() || cells.len() != names.len() || cells.iter().any(|row| row.len() != names.len()) {
        return String::new();
    }
    let count = names.len() as f64;
    let short: Vec<String> = names.iter().map(|name| shortened(name, LONGEST)).collect();
    let longest = short.iter().map(|name| name.chars().count()).max().unwrap_or(1) as f64 * CHARACTER;
    let (left, top) = (longest + 10.0, 2.0 * LINE);
    let side = ((size.width - left - 12.0) / count).clamp(SIDES.1, SIDES.0);
    let (width, bottom) = (left + side * count, top + side * count);
    let upright = longest > side;
    let below = if upright { longest } else { LINE };
    let mut svg = begin(size.width.max(width + 12.0), bottom + below + 2.0 * LINE, titles.chart);
    let _ = write!(svg, r#"<text class="label" x="2" y="14">{}</text>"#, escaped(titles.y));
    // Shows only the names that fit.
    let every = (LINE / side).ceil().max(1.0) as usize;
    for (at, name) in short.iter().enumerate().filter(|(at, _)| at % every == 0) {
        let (middle, name) = ((at as f64 + 0.5) * side, escaped(name));
        let (x, y) = (left - 6.0, top + middle + 4.0);
        let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="end">{name}</text>"#);
        let (x, y) = (left + middle, bottom + if upright { 6.0 } else { LINE });
        if upright {
            let x = x + 4.0;
            let _ = write!(
                svg,
                r#"<text class="tick" transform="translate({x:.1} {y:.1}) rotate(-90)" text-anchor="end">{name}</text>"#
            );
        } else {
            let _ =
                write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="middle">{name}</text>"#);
        }
    }
    let _ = write!(
        svg,
        r#"<text class="label" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text><g class="s0">"#,
        ((left + width) / 2.0).max(CHARACTER * titles.x.chars().count() as f64 / 2.0),
        bottom + below + LINE + 6.0,
        escaped(titles.x)
    );
    let digits = cells.iter().flatten().map(|amount| number(*amount).chars().count()).max().unwrap_or(1);
    let is_numbered = CHARACTER * digits as f64 + 4.0 <= side;
    for (row, own) in cells.iter().enumerate() {
        let all: f64 = own.iter().sum();
        for (column, &amount) in own.iter().enumerate().filter(|(_, amount)| **amount > 0.0) {
            let share = amount / all;
            let (at, down) = (left + column as f64 * side, top + row as f64 * side);
            let said = escaped(&format!("{} → {}: {}", names[row], names[column], number(amount)));
            let _ = write!(
                svg,
                r#"<rect class="cell" x="{at:.1}" y="{down:.1}" width="{side:.1}" height="{side:.1}" fill-opacity="{:.3}"><title>{said}</title></rect>"#,
                0.06 + 0.94 * share
            );
            if is_numbered {
                let text = number(amount);
                let class = if share > 0.5 { "over" } else { "in" };
                let (x, y) = (at + side / 2.0, down + side / 2.0 + 4.0);
                let _ = write!(
                    svg,
                    r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="middle">{text}</text>"#
                );
            }
        }
    }
    let _ =
        write!(svg, r#"</g><path class="grid" d="M{left:.1} {top:.1}H{width:.1}V{bottom:.1}H{left:.1}Z"/>"#);
    svg + "</svg>"
}

/// Formats integers without decimals and other numbers with two.
fn number(amount: f64) -> String {
    if amount.fract() == 0.0 { format!("{amount:.0}") } else { format!("{amount:.2}") }
}

#[cfg(test)]
mod tests {
    use super::super::{NARROW, WIDE};
    use super::*;

    #[test]
    fn colour_of_a_cell_shows_its_share_of_the_row() {
        let names = ["a < b".to_string(), "other".to_string()];
        let svg = heat(
            WIDE,
            Titles { chart: "t", x: "predicted", y: "true" },
            &names,
            &[vec![3.0, 1.0], vec![0.0, 2.5]],
        );
        // 0.06 + 0.94 · 3/4, 1/4 and 1; the chart skips the empty cell.
        for opacity in ["0.765", "0.295", "1.000"] {
            assert_eq!(svg.matches(&format!(r#"fill-opacity="{opacity}""#)).count(), 1, "{opacity} in {svg}");
        }
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("a &lt; b → other: 1<") && svg.contains(">2.50</text>"), "{svg}");
        assert!(!svg.contains("a < b") && !svg.contains("NaN"), "{svg}");
        assert_eq!(svg.matches(r#"class="over""#).count(), 2, "numbers on strong cells are light: {svg}");
        let svg = heat(
            WIDE,
            Titles { chart: "t", x: "x", y: "y" },
            &names,
            &[vec![3_000_000.0, 1.0], vec![0.0, 2.0]],
        );
        assert!(!svg.contains(">1</text>"), "all numbers or none: {svg}");
    }

    #[test]
    fn many_classes_give_small_cells_and_few_names() {
        let names: Vec<String> = (0..50).map(|class| format!("class {class}")).collect();
        let cells: Vec<Vec<f64>> =
            (0..50).map(|row| (0..50).map(|column| f64::from(u8::from(row == column))).collect()).collect();
        for size in [WIDE, NARROW] {
            let svg = heat(size, Titles { chart: "t", x: "predicted", y: "true" }, &names, &cells);
            assert_eq!(svg.matches("<rect").count(), 50);
            // 925 pixels next to the names leave 16 for each of 50; 260 pixels leave 5, so every third name appears, twice.
            let names = if size.names > 0.0 { 100 } else { 2 * 17 };
            assert_eq!(svg.matches(r#"class="tick""#).count(), names, "{svg}");
            assert!(svg.contains(&format!(r#"width="{:.0}""#, size.width)), "no wider than asked: {svg}");
        }
        assert_eq!(heat(WIDE, Titles { chart: "t", x: "x", y: "y" }, &[], &[]), "", "nothing to draw");
        assert_eq!(
            heat(WIDE, Titles { chart: "t", x: "x", y: "y" }, &names, &[vec![1.0]]),
            "",
            "not a square"
        );
    }
}
