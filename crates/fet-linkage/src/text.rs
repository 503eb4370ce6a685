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
        '&' => " and ",
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
