//! Checks that a refusal's message is clear to readers who do not know Rust. It does not check that the
//! message is true.

use fet_testing::message::{control, jargon};

/// Words that no user should see, in addition to the general list.
const JARGON: &[&str] = &[
    "stack backtrace",
    "invalid value:",
    "`.`:",
    "did not contain valid",
    "isize",
    "u8",
    "u16",
    "u32",
    "i32",
];
/// Maximum number of lines of a message.
const LINES: usize = 3;
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

/// Returns the problems with standard error of a command that refused or failed.
pub(crate) fn problems(stderr: &str, names: &str) -> Vec<String> {
    let mut found = Vec::new();
    let starts: Vec<usize> = stderr
        .match_indices('\n')
        .map(|(at, _)| at + 1)
        .chain([0])
        .filter(|&at| ["fet: ", "error: "].iter().any(|start| stderr[at..].starts_with(start)))
        .collect();
    let Some(&start) = starts.iter().min() else {
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
    found.extend(jargon(own, JARGON));
    found.extend(control(stderr));
    let lower = own.to_lowercase();
    if !names.is_empty() && !names.split('|').any(|name| lower.contains(&name.to_lowercase())) {
        found.push(format!("contains none of `{names}`"));
    }
    found
}

/// Returns true for a line that shows a place in a file, that belongs to a list of arguments, or that is
/// empty.
fn is_excerpt(line: &str) -> bool {
    if line.starts_with("  ") {
        return true;
    }
    let line = line.trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    line.is_empty() || line.starts_with('|')
}
