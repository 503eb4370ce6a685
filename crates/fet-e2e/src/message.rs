//! Checks that a refusal's message is clear to readers who do not know Rust. It does not check that the
//! message is true.

/// Words that no user should see.
const JARGON: &[&str] = &[
    "panicked",
    "stack backtrace",
    "RUST_BACKTRACE",
    "struct ",
    "unknown variant",
    "Some(",
    "None)",
    "invalid type",
    "invalid value:",
    "expected a sequence",
    "expected a map",
    "expected tuple",
    "did not contain valid",
    "Settings`",
    "`.`:",
    "Os {",
    "Err(",
    "Ok(",
    "Error {",
    "ErrorKind",
    "Kind(",
    "Failure::",
    "unwrap",
    "called `Result",
    "called `Option",
    "usize",
    "isize",
    "u8",
    "u16",
    "u32",
    "u64",
    "i32",
    "i64",
    "f64",
    "memory allocation of",
];
/// Maximum number of lines of a message.
const LINES: usize = 3;
/// Maximum number of characters of a message.
const LENGTH: usize = 1200;

/// Converts standard error of a command with `--log json` to the form without it. A line that is not JSON
/// becomes another error, so that it counts as an extra message.
pub(crate) fn of_events(stderr: &str) -> String {
    let line = |line: &str| match serde_json::from_str::<serde_json::Value>(line) {
        Ok(event) if event["event"] == "error" => {
            format!("fet: {}\n", event["message"].as_str().unwrap_or_default())
        }
        Ok(_) => String::new(),
        Err(_) => format!("error: not JSON: {line}\n"),
    };
    stderr.lines().map(line).collect()
}

/// Returns the problems with standard error of a command that refused or failed. The message must contain one
/// text of each of `names`; `|` separates alternatives.
pub(crate) fn problems(stderr: &str, names: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let starts: Vec<usize> = [0]
        .into_iter()
        .chain(stderr.match_indices('\n').map(|(at, _)| at + 1))
        .filter(|&at| ["fet: ", "error: "].iter().any(|start| stderr[at..].starts_with(start)))
        .collect();
    let Some(&start) = starts.first() else {
        let what =
            if stderr.trim().is_empty() { "no message" } else { "no line begins with `fet: ` or `error: `" };
        return vec![what.to_string()];
    };
    if starts.len() > 1 {
        found.push(format!("{} messages", starts.len()));
    }
    let message = &stderr[start..];
    let own = message.split("\nUsage:").next().unwrap_or(message);
    let lines = own.lines().filter(|line| !is_excerpt(line)).count();
    if lines > LINES {
        found.push(format!("{lines} lines"));
    }
    if own.chars().count() > LENGTH {
        found.push(format!("{} characters", own.chars().count()));
    }
    found.extend(jargon(own).map(|word| format!("contains `{word}`")));
    found.extend(control(stderr));
    let lower = own.to_lowercase();
    let missing = |names: &&&str| !names.split('|').any(|name| lower.contains(&name.to_lowercase()));
    found.extend(names.iter().filter(missing).map(|names| format!("contains none of `{names}`")));
    found
}

/// Returns the words of a message that no user should see.
pub(crate) fn jargon(message: &str) -> impl Iterator<Item = &'static str> {
    JARGON.iter().copied().filter(|word| has(message, word))
}

/// Reports the first control character in printed text, because a terminal would obey it.
pub(crate) fn control(text: &str) -> Option<String> {
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

/// Returns true for a line that shows a place in a file, that belongs to a list of arguments, or that is
/// empty.
fn is_excerpt(line: &str) -> bool {
    if line.starts_with("  ") {
        return true;
    }
    let line = line.trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    line.is_empty() || line.starts_with('|') || line.starts_with("-->")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_message_is_one_line_that_names_the_problem() {
        for (stderr, names, expected) in [
            ("waiting for p1\nfet: roster.toml: `wait` is missing\n", &["wait"][..], 0),
            ("fet: roster.toml: `wait` is missing\n", &["roster", "key"], 1),
            ("waiting for p1\n", &[], 1),
            ("fet: one\nfet: two\n", &[], 1),
            ("fet: one\ntwo\nthree\nfour\n", &[], 1),
            ("fet: it is not a usize\n", &[], 1),
            ("fet: its u64s are used\n", &[], 0),
            ("fet: a\u{1b}[31m\n", &["a"], 1),
        ] {
            assert_eq!(problems(stderr, names).len(), expected, "{stderr:?}: {:?}", problems(stderr, names));
        }
    }
}
