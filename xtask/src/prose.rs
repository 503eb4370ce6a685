//! Checks of the sources that the compiler and its lints cannot make: plain English in comments and messages, and no comparison of a
//! component's name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Words that a doc comment must not start with: a noun or a verb says what the item is.
const STARTS: &[&str] = &["What", "Who", "How", "Whether", "Where", "That", "Which"];

/// Words that comments and messages must not contain, each with a plain one.
const WORDS: &[(&str, &str)] = &[
    ("whoever", "name the actor"),
    ("anew", "again"),
    ("alike", "equal, similar"),
    ("yardstick", "baseline"),
    ("beside", "next to, in addition to, compared with"),
    ("nobody", "no party, no process"),
    ("but for", "except"),
    ("so many", "a number"),
    ("is told", "learns"),
    ("are told", "learn"),
    ("is waited for", "name who waits"),
    ("mended", "fixed, repaired"),
];

/// Code that compares the name of a component. Its capabilities are methods of its trait.
const COMPARISONS: &[&str] = &[
    ".kind() == \"",
    ".kind() != \"",
    "contains(&slot.kind())",
    "match slot.kind() {",
    "\"].contains(&kind)",
];

/// Returns the places of all sources that break a rule.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["crates", "examples", "xtask/src"].map(|folder| root.join(folder)) {
        if folder.is_dir() {
            sources(&folder, &mut files)?;
        }
    }
    let mut found = Vec::new();
    for path in files {
        // This file lists the words.
        if path.ends_with("xtask/src/prose.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let tested = name.contains("/tests/") || name.ends_with("tests.rs");
        found.extend(
            of_text(&text, tested).into_iter().map(|(line, problem)| format!("{name}:{line}: {problem}")),
        );
    }
    Ok(found)
}

/// Adds the Rust files of a folder.
pub(crate) fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the lines of a source that break a rule. Tests may compare names.
fn of_text(text: &str, tested: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut begins = true;
    for (line, number) in text.lines().zip(1..) {
        let code = line.trim_start();
        let doc = code.strip_prefix("///").or_else(|| code.strip_prefix("//!"));
        if let Some(first) = doc.filter(|_| begins).and_then(|doc| doc.split_whitespace().next())
            && STARTS.contains(&first)
        {
            found.push((
                number,
                format!("the doc comment starts with \"{first}\": start with a noun or a verb"),
            ));
        }
        begins = doc.is_none();
        let prose = words(code);
        for (word, instead) in WORDS {
            if contains(&prose, word) {
                found.push((number, format!("\"{word}\": write {instead}")));
            }
        }
        if !tested && let Some(compares) = COMPARISONS.iter().find(|compares| code.contains(**compares)) {
            found.push((
                number,
                format!("`{compares}` compares a component's name: add a method to its trait"),
            ));
        }
    }
    found
}

/// Returns the comment of a line, or its string literals.
fn words(code: &str) -> String {
    match code.split_once("//") {
        Some((before, comment)) if before.matches('"').count() % 2 == 0 => comment.to_lowercase(),
        _ => code
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|text| text.contains(' '))
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase(),
    }
}

/// Returns true if the text has the word, or the words, at word boundaries.
fn contains(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '`' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(inside)
            && !text[at + word.len()..].chars().next().is_some_and(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_stilted_words_and_compared_names() {
        for (text, tested, expected) in [
            ("/// What it is.\nfn f() {}\n", false, Some((1, "starts with \"What\""))),
            ("/// Returns a name.\n/// What follows is text.\n", false, None),
            ("//! Whether it is.\n", true, Some((1, "Whether"))),
            ("// Nobody asks.\n", false, Some((1, "nobody"))),
            ("let beside = \"a b\";\n", false, None),
            ("let x = \"the file beside this one\";\n", false, Some((1, "beside"))),
            ("let url = \"https://example.org\";\n", false, None),
            ("if linker.kind() == \"clk\" {\n", false, Some((1, "compares a component's name"))),
            ("if linker.kind() == \"clk\" {\n", true, None),
        ] {
            let found = of_text(text, tested);
            match expected {
                None => assert!(found.is_empty(), "{text}: {found:?}"),
                Some((line, part)) => {
                    let [(number, problem)] = found.as_slice() else { panic!("{text}: {found:?}") };
                    assert!(*number == line && problem.contains(part), "{text}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn the_sources_keep_the_rules() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        let found = problems(root).expect("readable");
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
