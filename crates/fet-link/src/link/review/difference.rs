//! Marks the differences between two cells for a reader: the letters outside their longest common
//! subsequence, ignoring case.
//!
//! The marks do not affect the similarity, which the linker computes.

use serde::Serialize;

/// Part of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    text: String,
    differs: bool,
}

/// Maximum length of a marked cell in letters, because marking takes time and memory proportional to the
/// product of both lengths.
const LONGEST: usize = 600;

/// Splits both cells into parts.
pub(super) fn parts(first: &str, second: &str) -> [Vec<Part>; 2] {
    let letters = [first, second].map(|cell| cell.chars().collect::<Vec<char>>());
    if letters.iter().any(|letters| letters.is_empty() || letters.len() > LONGEST) {
        return [first, second].map(|cell| vec![Part { text: cell.to_string(), differs: false }]);
    }
    let common = common(&letters[0], &letters[1]);
    [0, 1].map(|side| joined(&letters[side], &common[side]))
}

/// Returns true for each letter of either cell that is in the longest common subsequence.
fn common(first: &[char], second: &[char]) -> [Vec<bool>; 2] {
    let same = |a: usize, b: usize| first[a].to_lowercase().eq(second[b].to_lowercase());
    let width = second.len() + 1;
    // Length of the longest common subsequence of the rests from (a, b) on.
    let mut lengths = vec![0u16; (first.len() + 1) * width];
    for a in (0..first.len()).rev() {
        for b in (0..second.len()).rev() {
            lengths[a * width + b] = if same(a, b) {
                lengths[(a + 1) * width + b + 1] + 1
            } else {
                lengths[(a + 1) * width + b].max(lengths[a * width + b + 1])
            };
        }
    }
    let mut marks = [vec![false; first.len()], vec![false; second.len()]];
    let (mut a, mut b) = (0, 0);
    while a < first.len() && b < second.len() {
        if same(a, b) {
            (marks[0][a], marks[1][b]) = (true, true);
            (a, b) = (a + 1, b + 1);
        } else if lengths[(a + 1) * width + b] >= lengths[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    marks
}

/// Joins adjacent letters of the same kind into parts.
fn joined(letters: &[char], common: &[bool]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (letter, common) in letters.iter().zip(common) {
        match parts.last_mut() {
            Some(last) if last.differs != *common => last.text.push(*letter),
            _ => parts.push(Part { text: letter.to_string(), differs: !common }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts marked letters in brackets.
    fn shown(first: &str, second: &str) -> [String; 2] {
        parts(first, second).map(|parts| {
            let show =
                |part: &Part| if part.differs { format!("[{}]", part.text) } else { part.text.clone() };
            parts.iter().map(show).collect()
        })
    }

    #[test]
    fn marks_text_that_only_one_cell_has() {
        let cases = [
            ("Ogdenville", "ogdenvile", "Ogdenvil[l]e", "ogdenvile"),
            ("12 Main Street", "12 Main St", "12 Main St[reet]", "12 Main St"),
            ("Müller", "MUELLER", "M[ü]ller", "M[UE]LLER"),
            ("<b>", "b", "[<]b[>]", "b"),
            ("abc", "", "abc", ""),
            ("ab", "cd", "[ab]", "[cd]"),
        ];
        for (first, second, left, right) in cases {
            assert_eq!(shown(first, second), [left, right], "{first:?} {second:?}");
        }
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(shown(&long, "y"), [long.as_str(), "y"], "too long to be compared");
    }
}
