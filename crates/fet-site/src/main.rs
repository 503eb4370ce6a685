//! `fet-site`: builds the site of the guides. Without the feature `book` it only prints an error.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use fet_site::{html, stage};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fet-site: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let out = std::env::args_os().nth(1).context("usage: fet-site FOLDER")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let book = Path::new(&out).join("book");
    stage::stage(&root, &book)?;
    render(&book)?;
    let site = book.join("book");
    let broken = html::broken(&site)?;
    if !broken.is_empty() {
        bail!("broken links in the site:\n{}", broken.join("\n"));
    }
    eprintln!("the site: {}", site.join("index.html").display());
    Ok(())
}

#[cfg(feature = "book")]
fn render(book: &Path) -> Result<()> {
    let book = mdbook_driver::MDBook::load(book)?;
    book.build()
}

#[cfg(not(feature = "book"))]
fn render(_book: &Path) -> Result<()> {
    bail!("built without mdBook: cargo run -p fet-site --features book")
}
