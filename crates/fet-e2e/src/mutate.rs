//! Seeded changes of texts and bytes, mostly small ones. The changes do not depend on a format.

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Texts that have broken programs.
const NASTY: [&str; 26] = [
    "-1",
    "0",
    "1e309",
    "-1e309",
    "nan",
    "inf",
    "99999999999999999999",
    "9223372036854775807",
    "4294967296",
    "1.5",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"",
    "'",
    "\u{feff}",
    "\u{0}",
    "\u{1b}[31m",
    "\r",
    "\n",
    ",",
    ";",
    "\t",
    "\u{202e}",
    "é",
];

/// Returns a separate generator for each case, so that a case can be repeated alone.
pub(crate) fn generator(seed: u64, area: &str, number: u64) -> ChaCha8Rng {
    let own = area.bytes().fold(number, |sum, byte| sum.wrapping_mul(257).wrapping_add(u64::from(byte)));
    ChaCha8Rng::seed_from_u64(seed ^ own.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Makes one to three changes: flips, cuts, doubles or moves bytes, or replaces them by a nasty text.
pub(crate) fn bytes(original: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut text = original.to_vec();
    for _ in 0..rng.random_range(1..=3) {
        if text.is_empty() {
            break;
        }
        let at = rng.random_range(0..text.len());
        let end = (at + rng.random_range(1..12usize)).min(text.len());
        match rng.random_range(0..6) {
            0 => text[at] ^= 1 << rng.random_range(0..8u32),
            1 => text.truncate(at),
            2 => drop(text.drain(at..end)),
            3 => {
                let part = text[at..end].to_vec();
                text.splice(at..at, part);
            }
            4 => drop(text.splice(at..end, nasty(rng).bytes())),
            _ => drop(text.splice(at..at, nasty(rng).bytes())),
        }
    }
    text
}

/// Makes one to three changes to whole values: replaces the text after `=` or between delimiters by a nasty
/// text, or drops or doubles lines.
pub(crate) fn values(original: &str, ends: &[char], rng: &mut ChaCha8Rng) -> String {
    let mut lines: Vec<String> = original.lines().map(String::from).collect();
    for _ in 0..rng.random_range(1..=3) {
        if lines.is_empty() {
            break;
        }
        let at = rng.random_range(0..lines.len());
        match rng.random_range(0..8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = rng.random_range(0..lines.len());
                lines.swap(at, other);
            }
            _ => {
                let mut parts: Vec<String> = lines[at].split_inclusive(ends).map(String::from).collect();
                if let Some(part) = (!parts.is_empty()).then(|| rng.random_range(0..parts.len())) {
                    let end = parts[part].chars().next_back().filter(|c| ends.contains(c));
                    parts[part] = nasty(rng).to_string();
                    parts[part].extend(end);
                }
                lines[at] = parts.concat();
            }
        }
    }
    lines.join("\n") + "\n"
}

fn nasty(rng: &mut ChaCha8Rng) -> &'static str {
    NASTY.choose(rng).copied().unwrap_or("")
}
