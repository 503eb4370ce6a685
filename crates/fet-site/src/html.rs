//! Link check of a finished site: each link must lead to an existing file and anchor.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Returns the broken links, as `page: link`.
pub fn broken(site: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    html_files(site, &mut pages)?;
    // A server shows this page for missing pages. Its links start at the server's root.
    pages.retain(|page| !page.ends_with("404.html"));
    let mut found = Vec::new();
    for page in &pages {
        let text = read(page)?;
        for link in attributes(&text, "href").chain(attributes(&text, "src")) {
            if link.contains(':') || link.starts_with("//") || link.is_empty() {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = path.split('?').next().unwrap_or_default();
            let target = if path.is_empty() { page.clone() } else { page.with_file_name("").join(path) };
            let target = if target.is_dir() { target.join("index.html") } else { target };
            let is_there = target.is_file()
                && (anchor.is_empty() || {
                    let other = read(&target)?;
                    attributes(&other, "id").any(|id| id == anchor)
                });
            if !is_there {
                let page = page.strip_prefix(site).unwrap_or(page);
                found.push(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok(found)
}

/// Returns the values of an attribute.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {name}=\"");
    let mut rest = text;
    std::iter::from_fn(move || {
        let after = &rest[rest.find(&begin)? + begin.len()..];
        let (value, next) = after.split_once('"')?;
        rest = next;
        Some(value)
    })
}

fn html_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            html_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_told() {
        let site = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(site.path().join(name), text).expect("writable");
        write(
            "a.html",
            "<a href=\"b.html#x\"> <a href=\"b.html#y\"> <img src=\"p.svg\"> <a href=\"https://e.org/\">",
        );
        write("b.html", "<h1 id=\"x\"> <a href=\"a.html\"> <a href=\"#x\">");
        assert_eq!(broken(site.path()).expect("readable"), ["a.html: b.html#y", "a.html: p.svg"]);
    }
}
