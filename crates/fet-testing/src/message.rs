//! Checks of user messages for Rust jargon and control characters.

/// Words that no user should see.
const JARGON: &[&str] = &[
    "panicked",
    "RUST_BACKTRACE",
    "expected usize",
    "struct ",
    "unknown variant",
    "Some(",
    "None)",
    "invalid type:",
    "Os {",
    "Err(",
    "Ok(",
    "unwrap()",
    "called `Result",
    "called `Option",
    "usize",
    "u64",
    "i64",
    "f64",
    "memory allocation of",
];

/// Returns the words of a message that no user should see, including words in `more`.
pub fn jargon(message: &str, more: &[&str]) -> Vec<String> {
    let found = JARGON.iter().chain(more).filter(|word| has(message, word));
    found.map(|word| format!("contains `{word}`")).collect()
}

/// Reports the first control character in printed text, because a terminal would obey it.
pub fn control(text: &str) -> Option<String> {
    let found = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r'))?;
    Some(format!("prints the control character U+{:04X}", u32::from(found)))
}

/// Returns true if the text contains `word`. A word of letters and digits must be a whole word of the text.
fn has(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let whole = word.chars().all(is_word);
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_word);
        let after = text[at + word.len()..].chars().next().is_some_and(is_word);
        !whole || !(before || after)
    })
}
