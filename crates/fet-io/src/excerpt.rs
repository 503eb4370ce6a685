//! Excerpts of TOML files: the line of a setting, with a mark below it.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use toml::de::{DeTable, DeValue};

/// Longest line that an excerpt shows, in bytes.
const LONGEST: usize = 200;

/// Part of a setting that an excerpt marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The name, as of an unknown setting.
    Name,
    /// The value.
    Value,
}

/// Returns the line of the TOML `text` that sets `field`, with the file's name, line and column; without the line's text if it is long
/// or may contain a private key. Dots separate the names of tables in
/// `field`, as in `data.secondaries[1].file`. Returns `None` if the text neither has the setting nor a table that the setting belongs
/// to.
pub fn excerpt(file: &str, text: &str, field: &str, mark: Mark) -> Option<String> {
    let span = span(text, field, mark)?;
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    // The line may contain a private key that was passed by mistake.
    if line.len() > LONGEST || line.chars().any(|c| c.is_control() && c != '\t') || holds_key(line) {
        let (row, column) = (text[..start].lines().count() + 1, text[start..span.start].chars().count() + 1);
        return Some(format!(" --> {file}:{row}:{column}"));
    }
    let end = span.end.min(start + line.len());
    let marked = AnnotationKind::Primary.span(span.start..end);
    let snippet = Snippet::source(text).path(file).annotation(marked);
    Some(Renderer::plain().render(&[Group::with_level(Level::ERROR).element(snippet)]))
}

/// Returns the bytes of the marked part of a setting; those of the innermost table that the text has if the setting is
/// not in it.
fn span(text: &str, field: &str, mark: Mark) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let mut table: &DeTable<'_> = root.get_ref();
    let mut found = None;
    let mut parts = field.split('.').peekable();
    while let Some(part) = parts.next() {
        let (name, places) = part.split_once('[').unwrap_or((part, ""));
        let Some((key, mut value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        found = Some(key.span());
        for place in places.split('[').filter_map(|place| place.trim_end_matches(']').parse::<usize>().ok()) {
            match value.get_ref().get(place) {
                Some(item) => {
                    found = Some(item.span());
                    value = item;
                }
                None => return found,
            }
        }
        match value.get_ref() {
            DeValue::Table(inner) if parts.peek().is_some() => table = inner,
            DeValue::Table(_) => break,
            _ if parts.peek().is_none() && mark == Mark::Value => return Some(value.span()),
            _ => break,
        }
    }
    found
}

/// Returns true if a word of a text looks like a private key.
pub fn holds_key(text: &str) -> bool {
    let key = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    text.split_whitespace().any(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = 'x'\n[data]\nkind = 'linked'\n[[data.secondaries]]\nfile = 'a.csv'\n\
                        [[data.secondaries]]\nfile = 7\n[train]\nepochs = 0\ninner = { depth = 'no' }\n";

    #[test]
    fn marks_the_value_the_name_or_the_table() {
        for (field, mark, expected) in [
            ("train.epochs", Mark::Value, Some("epochs = 0|9|10|^")),
            ("train.epochs", Mark::Name, Some("epochs = 0|9|1|^^^^^^")),
            ("data.secondaries[1].file", Mark::Value, Some("file = 7|7|8|^")),
            ("train.inner.depth", Mark::Value, Some("inner = { depth = 'no' }|10|19|^^^^")),
            ("train.batch_size", Mark::Value, Some("[train]|8|2|^^^^^")),
            ("linker.kind", Mark::Value, None),
        ] {
            let shown = excerpt("a.toml", TEXT, field, mark);
            let Some(expected) = expected else {
                assert_eq!(shown, None);
                continue;
            };
            let shown = shown.unwrap_or_else(|| panic!("{field} has a place"));
            let parts: Vec<&str> = expected.split('|').collect();
            assert!(shown.contains(&format!("--> a.toml:{}:{}", parts[1], parts[2])), "{shown}");
            assert!(shown.contains(&format!("{} | {}", parts[1], parts[0])), "{shown}");
            let marks: String = shown.chars().filter(|&c| c == '^').collect();
            assert_eq!(marks, parts[3], "{shown}");
        }
    }

    #[test]
    fn quotes_no_private_key_and_no_long_line() {
        let key = "A".repeat(60);
        let long = format!("name = \"{}\"", "x y ".repeat(100));
        for text in [format!("name = \"{key}\""), long] {
            let shown = excerpt("a.toml", &format!("a = 1\n{text}"), "name", Mark::Value);
            assert_eq!(shown.as_deref(), Some(" --> a.toml:2:8"), "{text}");
        }
    }
}
