//! Source folder for mdBook: the pages at their places in the repository, and a summary.
//!
//! Pages keep their places, so that links between them remain valid. Only `README.md` becomes `index.md`, the
//! first page of its folder. A link to other files (code, an experiment) is replaced by its text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::markdown::{Link, links};

/// List of pages, in the repository.
pub const SUMMARY: &str = "docs/SUMMARY.md";
/// Settings of the site, in the repository.
pub const SETTINGS: &str = "docs/book.toml";
/// Folder of pictures, in the repository.
const PICTURES: &str = "docs/pictures";

/// Returns the pages of the site in order, relative to the repository's root.
pub fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let summary = read(&root.join(SUMMARY))?;
    Ok(links(&summary).iter().filter_map(|link| target(Path::new(SUMMARY), link)).collect())
}

/// Returns the target of a link relative to the repository's root. `None` for links to other sites or within
/// the page.
pub fn target(page: &Path, link: &Link) -> Option<PathBuf> {
    let path = link.to.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let mut whole = PathBuf::new();
    for part in page.parent().unwrap_or(Path::new("")).join(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    Some(whole)
}

/// Writes the source folder.
pub fn stage(root: &Path, out: &Path) -> Result<()> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    let source = out.join("src");
    let pages = pages(root)?;
    let known: BTreeSet<&PathBuf> = pages.iter().collect();
    for page in &pages {
        let text = read(&root.join(page))?;
        let kept = rewritten(&text, |link| {
            let Some(target) = target(page, link) else { return Some(link.to.clone()) };
            (known.contains(&target) || target.starts_with(PICTURES)).then(|| staged(&link.to))
        });
        write(&source.join(staged(&page.display().to_string())), &kept)?;
    }
    let summary = rewritten(&read(&root.join(SUMMARY))?, |link| {
        target(Path::new(SUMMARY), link).map(|target| staged(&target.display().to_string()))
    });
    write(&source.join("SUMMARY.md"), &summary)?;
    write(&out.join("book.toml"), &read(&root.join(SETTINGS))?)?;
    for entry in fs::read_dir(root.join(PICTURES)).with_context(|| format!("cannot read {PICTURES}"))? {
        let path = entry?.path();
        let name = path.file_name().context("a picture has a name")?;
        fs::copy(&path, folder(&source.join(PICTURES))?.join(name))
            .with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}

/// Returns the path of a page in the source folder.
fn staged(path: &str) -> String {
    path.replace("README.md", "index.md")
}

/// Returns the page with each link replaced by its new target, or by its text if `to` returns `None`.
fn rewritten(page: &str, to: impl Fn(&Link) -> Option<String>) -> String {
    let mut text = String::with_capacity(page.len());
    let mut at = 0;
    for link in links(page) {
        match to(&link) {
            Some(to) => {
                text.push_str(&page[at..link.text.end]);
                text.push_str(&format!("]({to})"));
            }
            None => {
                text.push_str(&page[at..link.whole.start]);
                text.push_str(&page[link.text.clone()]);
            }
        }
        at = link.whole.end;
    }
    text.push_str(&page[at..]);
    text
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn folder(path: &Path) -> Result<&Path> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result<()> {
    folder(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_stay_and_others_become_text() {
        let page = "[a](a.md), [`b`](../b.rs) and ![c](c.svg).";
        let kept = rewritten(page, |link| (!link.to.ends_with("rs")).then(|| link.to.clone()));
        assert_eq!(kept, "[a](a.md), `b` and ![c](c.svg).");
    }

    #[test]
    fn targets_are_told_from_the_root() {
        let check = |page: &str, to: &str, expected: Option<&str>| {
            let link = Link { to: to.into(), whole: 0..0, text: 0..0 };
            assert_eq!(target(Path::new(page), &link), expected.map(PathBuf::from), "{page} {to}");
        };
        check("docs/a.md", "b.md#x", Some("docs/b.md"));
        check("docs/a.md", "../ARCHITECTURE.md", Some("ARCHITECTURE.md"));
        check("README.md", "docs/a.md", Some("docs/a.md"));
        check("README.md", "#here", None);
        check("README.md", "https://example.org/a.md", None);
    }
}
