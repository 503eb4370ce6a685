//! Checks that a refusal's message is clear to readers who do not know Rust. It does not check that the
//! message is true.

use fet_testing::message::{control, jargon};

/// Words that no user should see, in addition to the general list.
const JARGON: &[&str] = &["ErrorKind", "Kind(", "Failure::", "Error {"];
/// Maximum number of characters of a message.
const LONGEST: usize = 1200;

/// Returns the problems with the standard error of a process that refused. The message must contain one text
/// of each of `names`; `|` separates alternatives.
pub(crate) fn problems(stderr: &str, names: &[&str]) -> Vec<String> {
    let starts = ["fet: ", "error: "];
    let messages: Vec<&str> =
        stderr.lines().filter(|line| starts.iter().any(|start| line.starts_with(start))).collect();
    let mut found = Vec::new();
    match messages.len() {
        0 => return vec!["no line begins with `fet: `".into()],
        1 => {}
        many => found.push(format!("{many} messages")),
    }
    let at = stderr.find(messages[0]).unwrap_or(0);
    let message = &stderr[at..];
    if message.chars().count() > LONGEST {
        found.push(format!("{} characters", message.chars().count()));
    }
    found.extend(jargon(message, JARGON));
    found.extend(control(stderr));
    let lower = message.to_lowercase();
    let missing = |names: &&&str| !names.split('|').any(|name| lower.contains(&name.to_lowercase()));
    found.extend(names.iter().filter(missing).map(|name| format!("does not contain `{name}`")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_message_is_one_line_that_names_what_is_wrong() {
        for (stderr, names, expected) in [
            ("waiting for p1\nfet: roster.toml: `wait` is missing\n", &["wait"][..], 0),
            ("fet: roster.toml: `wait` is missing\n", &["roster", "key"], 1),
            ("waiting for p1\n", &[], 1),
            ("fet: one\nfet: two\n", &[], 1),
            ("fet: it is not a usize\n", &[], 1),
            ("fet: its u64s are used\n", &[], 0),
            ("fet: a\u{1b}[31m\n", &["a"], 1),
        ] {
            assert_eq!(problems(stderr, names).len(), expected, "{stderr:?}: {:?}", problems(stderr, names));
        }
    }
}
