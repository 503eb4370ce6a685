//! Review as a self-contained page for a browser, without a server or network access.
//!
//! Cells may contain anything: the template escapes them, and the page's policy runs only its own script and
//! loads nothing.

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::json;

use super::content::{PairToReview, Review};
use super::difference::{Part, parts};
use super::sheet;
use crate::link::decisions::DECISION;

const TEMPLATE: &str = include_str!("page.html.jinja");
const SCRIPT: &str = include_str!("page.js");

/// Pair as the page shows it.
#[derive(Debug, Serialize)]
struct Shown {
    /// First cells of the pair's line in the file of decisions.
    line: String,
    similarity: f32,
    rank: usize,
    linked: bool,
    beaten: bool,
    /// Name of each row: its id, or else its number.
    names: [String; 2],
    keys: Vec<Key>,
}

/// Key column of both rows.
#[derive(Debug, Serialize)]
struct Key {
    name: String,
    cells: [Vec<Part>; 2],
}

/// Returns the page as text.
pub(super) fn text(review: &Review<'_>) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.add_template("review.html", TEMPLATE).context("the template of the review")?;
    let arguments = review.arguments;
    let files = [&arguments.primary, &arguments.secondary].map(|path| path.display().to_string());
    let page = json!({
        "files": files,
        "linker": review.linker,
        "threshold": review.threshold,
        "header": format!("{},{DECISION}", sheet::header(review)),
        "script": SCRIPT,
        "script_hash": BASE64_STANDARD.encode(fet_io::sha256(SCRIPT.as_bytes())),
        "pairs": review.pairs.iter().map(|pair| render_pair(review, pair)).collect::<Vec<_>>(),
    });
    let template = environment.get_template("review.html").context("the template of the review")?;
    template.render(Serde(page)).context("the page of the review")
}

fn render_pair(review: &Review<'_>, pair: &PairToReview) -> Shown {
    let [primary, secondary] = review.rows(pair);
    let rows = [pair.row, pair.record as usize];
    let name = |side: usize| match review.ids {
        Some(ids) => format!("{} (row {})", ids[side][rows[side]], rows[side]),
        None => format!("row {}", rows[side]),
    };
    let names = review.names[0].iter().zip(review.names[1]);
    let key = |((first, second), (one, other)): ((&String, &String), (&String, &String))| Key {
        name: if first == second { first.clone() } else { format!("{first} / {second}") },
        cells: parts(one, other),
    };
    Shown {
        line: sheet::line(review, pair),
        similarity: pair.similarity,
        rank: pair.rank + 1,
        linked: pair.linked,
        beaten: pair.beaten,
        names: [name(0), name(1)],
        keys: names.zip(primary.iter().zip(secondary)).map(key).collect(),
    }
}

#[cfg(test)]
mod tests {
    /// A browser ends a script at the first such mark in its text, in any context.
    #[test]
    fn data_cannot_close_the_script_element() {
        assert!(!super::SCRIPT.contains("</") && !super::SCRIPT.contains("<!--"));
    }
}
