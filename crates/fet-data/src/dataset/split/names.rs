//! Text keys for a split: words of random letters with typing errors.

use fet_core::data::TextTable;
use rand::{Rng, RngExt};

/// Draws `rows` keys of `words` words, each of six to ten letters.
pub(super) fn draw(rows: usize, words: usize, rng: &mut impl Rng) -> TextTable {
    let mut word = || (0..rng.random_range(6..=10)).map(|_| letter(rng)).collect::<String>();
    TextTable::new(words, (0..rows * words).map(|_| word()).collect())
}

/// Mistypes each letter with probability `rate`: replaces it, drops it, doubles it, or swaps it with the
/// previous letter.
pub(super) fn mistype(words: &TextTable, rate: f64, rng: &mut impl Rng) -> TextTable {
    let mut typed = |word: &str| {
        let mut out: Vec<char> = Vec::with_capacity(word.len() + 1);
        for sign in word.chars() {
            if !rng.random_bool(rate) {
                out.push(sign);
                continue;
            }
            match rng.random_range(0..4) {
                0 => out.push(letter(rng)),
                1 => {}
                2 => out.extend([sign, sign]),
                _ => out.insert(out.len().saturating_sub(1), sign),
            }
        }
        out.into_iter().collect()
    };
    TextTable::new(words.columns(), words.cells().into_iter().map(&mut typed).collect())
}

fn letter(rng: &mut impl Rng) -> char {
    char::from(b'a' + rng.random_range(0..26u8))
}
