//! Links, anchors and code blocks of a Markdown page. The parser supports the subset of Markdown that these
//! guides use.

/// Link in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Target as written: `page.md#heading`.
    pub to: String,
    /// Byte range of the whole link in the page: `[text](to)`.
    pub whole: std::ops::Range<usize>,
    /// Byte range of the link's text.
    pub text: std::ops::Range<usize>,
}

/// Fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Language after the fence: `toml`.
    pub language: String,
    /// Lines of code.
    pub code: String,
    /// Line number of the fence, from 1.
    pub line: usize,
}

/// Returns the links and pictures of a page, outside code.
pub fn links(page: &str) -> Vec<Link> {
    let prose = without_code(page);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(middle) = prose[at..].find("](").map(|offset| at + offset) {
        at = middle + 2;
        let Some(end) = prose[at..].find(')').map(|offset| at + offset) else { break };
        let Some(begin) = opening(&prose[..middle]) else { continue };
        let whole = if prose[..begin].ends_with('!') { begin - 1..end + 1 } else { begin..end + 1 };
        found.push(Link { to: page[at..end].to_string(), whole, text: begin + 1..middle });
        at = end;
    }
    found
}

/// Returns the position of the opening bracket of a link text that ends at the end of `before`.
fn opening(before: &str) -> Option<usize> {
    let mut depth = 0;
    for (place, byte) in before.bytes().enumerate().rev() {
        match byte {
            b']' => depth += 1,
            b'[' if depth == 0 => return Some(place),
            b'[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the anchors of a page's headings, in the form that forges and mdBook generate.
pub fn anchors(page: &str) -> Vec<String> {
    let prose = without_blocks(page);
    let mut found: Vec<String> = Vec::new();
    for line in prose.lines().filter(|line| line.starts_with('#')) {
        let title = line.trim_start_matches('#');
        if !title.starts_with(' ') {
            continue;
        }
        let mut anchor = String::new();
        for c in title.trim().chars() {
            match c {
                ' ' => anchor.push('-'),
                '-' | '_' => anchor.push(c),
                _ if c.is_alphanumeric() => anchor.extend(c.to_lowercase()),
                _ => {}
            }
        }
        let before = found.iter().filter(|other| **other == anchor).count();
        found.push(if before == 0 { anchor } else { format!("{anchor}-{before}") });
    }
    found
}

/// Returns the fenced code blocks of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open =
                    Some(Block { language: language.trim().into(), code: String::new(), line: number + 1 });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => {
                block.code.push_str(line);
                block.code.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// Returns the page with code replaced by spaces, byte for byte.
fn without_code(page: &str) -> String {
    let prose = without_blocks(page);
    let mut bytes = prose.clone().into_bytes();
    let mut at = 0;
    while let Some(begin) = prose[at..].find('`').map(|offset| at + offset) {
        let Some(end) = prose[begin + 1..].find('`').map(|offset| begin + 1 + offset) else { break };
        bytes[begin..=end].fill(b' ');
        at = end + 1;
    }
    // Spaces replaced whole spans between two ASCII bytes, so that the bytes are valid UTF-8.
    String::from_utf8(bytes).unwrap_or(prose)
}

/// Returns the page with fenced blocks replaced by spaces, byte for byte.
fn without_blocks(page: &str) -> String {
    let mut inside = false;
    let mut prose = String::with_capacity(page.len());
    for line in page.split_inclusive('\n') {
        let fence = line.trim_start().starts_with("```");
        if fence || inside {
            prose.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        } else {
            prose.push_str(line);
        }
        inside ^= fence;
    }
    prose
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let page =
            "See [a `b`](c.md#d) and ![p](q.svg), not `[x](y)`.\n```\n[x](y)\n```\n[last\none](e.md)\n";
        let found: Vec<(String, &str)> =
            links(page).into_iter().map(|link| (link.to, &page[link.text])).collect();
        let expected = [("c.md#d", "a `b`"), ("q.svg", "p"), ("e.md", "last\none")];
        assert_eq!(found, expected.map(|(to, text)| (to.to_string(), text)));
        assert_eq!(&page[links(page)[1].whole.clone()], "![p](q.svg)");
    }

    #[test]
    fn anchors_are_those_of_forges() {
        let page = "# 1. What `fet predict` reveals?\n## Two\n## Two\n```sh\n# no heading\n```\n#no\n### Ein Öl-Fass\n";
        assert_eq!(anchors(page), ["1-what-fet-predict-reveals", "two", "two-1", "ein-öl-fass"]);
    }

    #[test]
    fn blocks_have_a_language_and_a_line() {
        let page = "a\n```toml\nx = 1\n```\n```\ny\n```\n";
        let found: Vec<(String, String, usize)> =
            blocks(page).into_iter().map(|block| (block.language, block.code, block.line)).collect();
        assert_eq!(found, [("toml".into(), "x = 1\n".into(), 2), (String::new(), "y\n".into(), 5)]);
    }
}
