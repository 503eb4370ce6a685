//! Text in a chart.

/// Shortens text to at most `room` characters, with an ellipsis at the end.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_string();
    }
    text.chars().take(room - 1).collect::<String>().trim_end().to_string() + "…"
}

/// Escapes text for HTML and SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Breaks text at spaces into lines of at most `room` characters; a longer word gets its own line.
pub(crate) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abc def", 5), "abc…");
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("extraordinary", 4), ["extraordinary"]);
        assert_eq!(wrapped("", 4), [""; 0]);
    }
}
