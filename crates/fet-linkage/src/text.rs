//! Text keys made comparable: normal form, and the q-grams of a value.
//!
//! Two spellings that differ in case, punctuation, accents or spacing have the same normal form. Nothing here knows a
//! language's abbreviations or nicknames.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The normal form of a cell: compatibility-decomposed, without accents, lower case, words of letters and digits
/// with one space between them. Separators inside digits go (`310/246-1501` and `3102461501` are one number), and
/// apostrophes inside words. A cell of nothing but such signs, or that says that nothing is known (`n/a`, `null`, `nan`,
/// `none`, `?`), is empty.
pub fn normalise(cell: &str) -> String {
    let mut words = String::with_capacity(cell.len());
    let mut letters = false;
    for sign in cell.nfkd().filter(|sign| !is_combining_mark(*sign)) {
        if let Some(plain) = unaccented(sign) {
            words.push_str(plain);
            letters = true;
        } else if sign == '&' {
            let blank = if words.is_empty() || words.ends_with(' ') { "" } else { " " };
            words.extend([blank, "and "]);
            letters = true;
        } else if sign.is_alphanumeric() {
            letters |= !sign.is_numeric();
            words.extend(sign.to_lowercase());
        } else if !matches!(sign, '\'' | '\u{2019}' | '`') && !words.ends_with(' ') && !words.is_empty() {
            words.push(' ');
        }
    }
    let kept = words.trim_end();
    if !letters {
        return kept.replace(' ', "");
    }
    if matches!(kept, "n a" | "na" | "nan" | "null" | "none" | "unknown" | "missing") {
        return String::new();
    }
    kept.to_string()
}

/// Latin letters that have no decomposition.
fn unaccented(sign: char) -> Option<&'static str> {
    Some(match sign {
        'ß' | 'ẞ' => "ss",
        'æ' | 'Æ' => "ae",
        'œ' | 'Œ' => "oe",
        'ø' | 'Ø' => "o",
        'đ' | 'Đ' | 'ð' | 'Ð' => "d",
        'ł' | 'Ł' => "l",
        'þ' | 'Þ' => "th",
        'ı' => "i",
        _ => return None,
    })
}

/// Whether a normal form is a number, a date, a telephone number: digits alone.
pub fn is_number(normal: &str) -> bool {
    !normal.is_empty() && normal.bytes().all(|byte| byte.is_ascii_digit())
}

/// Calls `take` with each q-gram of a normal form, padded with q - 1 blanks on both sides so that the ends of a
/// value weigh as much as its middle. A value without signs has none.
pub fn qgrams(normal: &str, q: usize, mut take: impl FnMut(&[char])) {
    if normal.is_empty() || q == 0 {
        return;
    }
    let pad = std::iter::repeat_n(' ', q - 1);
    let signs: Vec<char> = pad.clone().chain(normal.chars()).chain(pad).collect();
    signs.windows(q).for_each(&mut take);
}

/// Records of `fields` texts as `columns` numbers each, row by row: every q-gram (q = 2) of every field adds a vector
/// of random signs that depends on nothing but the q-gram and the field, and the sum is divided by the root of the number of
/// q-grams. The square of the distance between two records then estimates the share of q-grams they do not
/// have in common. A record without a sign is at the origin.
pub fn sketch<T: AsRef<str>>(cells: &[T], fields: usize, columns: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(cells.len() / fields.max(1) * columns);
    for row in cells.chunks_exact(fields.max(1)) {
        let mut sums = vec![0.0; columns];
        let mut count = 0.0f64;
        for (field, cell) in row.iter().enumerate() {
            qgrams(&normalise(cell.as_ref()), 2, |gram| {
                count += 1.0;
                // FNV-1a, then the finaliser of SplitMix64 for each further 64 signs.
                let mut hash = 0xcbf2_9ce4_8422_2325 ^ field as u64;
                for sign in gram {
                    hash = (hash ^ u64::from(*sign)).wrapping_mul(0x0000_0100_0000_01b3);
                }
                for (column, sum) in sums.iter_mut().enumerate() {
                    let signs = crate::mix(hash.wrapping_add(column as u64 / 64));
                    *sum += if signs >> (column % 64) & 1 == 1 { 1.0 } else { -1.0 };
                }
            });
        }
        out.extend(sums.iter().map(|sum| sum / count.max(1.0).sqrt()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_meet_in_one_normal_form() {
        let check = |cells: &[&str], expected: &str| {
            for cell in cells {
                assert_eq!(normalise(cell), expected, "{cell:?}");
            }
        };
        check(&["O'Brien", " o\u{2019}brien ", "OBRIEN"], "obrien");
        check(&["Müller", "MU\u{308}LLER", "muller"], "muller");
        check(&["Straße 5", "strasse, 5"], "strasse 5");
        check(&["Ørsted-Łuk", "orsted luk"], "orsted luk");
        check(&["310/246-1501", "310 246 1501", "3102461501"], "3102461501");
        check(&["1990-02-03", "19900203"], "19900203");
        check(&["Arnie & Morton's", "arnie and mortons"], "arnie and mortons");
        check(&["", "  ", "-", "?", "N/A", "NaN", "NULL", "none"], "");
        check(&["北京 市"], "北京 市");
    }

    #[test]
    fn sketches_of_like_texts_are_near() {
        let sketch = sketch(&["anna", "smith", "Anna", "smyth", "bert", "jones", "", ""], 2, 16);
        let rows: Vec<&[f64]> = sketch.chunks(16).collect();
        let distance =
            |a: usize, b: usize| rows[a].iter().zip(rows[b]).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
        assert!(distance(0, 1) < 0.5 * distance(0, 2), "{} {}", distance(0, 1), distance(0, 2));
        assert_eq!(rows[3], [0.0; 16]);
    }

    #[test]
    fn qgrams_are_padded_windows() {
        let of = |text: &str, q: usize| {
            let mut all = Vec::new();
            qgrams(text, q, |gram| all.push(gram.iter().collect::<String>()));
            all
        };
        assert_eq!(of("ann", 2), [" a", "an", "nn", "n "]);
        assert_eq!(of("a", 3), ["  a", " a ", "a  "]);
        assert_eq!(of("ab", 1), ["a", "b"]);
        assert!(of("", 2).is_empty());
    }
}
