//! Normal form and q-grams of text keys.
//!
//! Two spellings have the same normal form if they differ only in case, punctuation, spacing, or the accents
//! of Latin, Greek and Cyrillic letters. Marks of other scripts (vowel signs of Devanagari, the voicing marks
//! of kana) count as letters and stay. The module does not know abbreviations or nicknames of any
//! language.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Returns the normal form of a cell: compatibility-composed, lower case, words of letters and digits
/// separated by single spaces. Accents of Latin, Greek and Cyrillic letters and apostrophes within words are
/// removed.
///
/// A cell without letters is a number if it is written as one: `-5`, `1,234.50` and `12,99` are -5, 1234.5
/// and 12.99. In other cells of at least seven digits, separators are removed if the result is unambiguous
/// (`310/246-1501` and `3102461501` are one telephone number, `1990-2-03` and `19900203` one date). Otherwise
/// separators split words, so that `12/3` differs from 123. A cell of punctuation alone is empty. Normalising
/// a normal form does not change it.
pub fn normalise(cell: &str) -> String {
    let plain = plain(cell);
    let cell = plain.as_ref();
    if !cell.chars().any(char::is_alphabetic)
        && let Some(number) = number(cell)
    {
        return number;
    }
    let mut words = String::with_capacity(cell.len());
    let (mut letters, mut folds) = (false, false);
    for sign in cell.nfkd() {
        if is_combining_mark(sign) {
            // Accents of folded letters are removed. Any other mark belongs to the letter before it.
            let starts = words.is_empty() || words.ends_with(' ');
            if !(starts || folds && is_accent(sign)) {
                words.push(sign);
            }
            continue;
        }
        if is_apostrophe(sign) {
            continue;
        }
        folds = is_folded(sign);
        if let Some(plain) = unaccented(sign) {
            words.push_str(plain);
            letters = true;
        } else if sign == '&' {
            let blank = if words.is_empty() || words.ends_with(' ') { "" } else { " " };
            words.extend([blank, "and "]);
            letters = true;
        } else if sign.is_alphanumeric() {
            letters |= !sign.is_numeric();
            // Both lower-case sigmas are one letter.
            words.extend(sign.to_lowercase().map(|sign| if matches!(sign, 'ς' | 'ϲ') { 'σ' } else { sign }));
        } else if !words.ends_with(' ') && !words.is_empty() {
            words.push(' ');
        }
    }
    let kept = words.trim_end();
    if !letters && let Some(joined) = joined(kept) {
        return joined;
    }
    kept.nfc().collect()
}

/// Returns a cell unchanged for the comparison of identifiers, except for composition (NFC) and surrounding
/// white space. A cell without letters and digits is empty.
pub fn verbatim(cell: &str) -> String {
    if !cell.chars().any(char::is_alphanumeric) {
        return String::new();
    }
    cell.trim().nfc().collect()
}

/// Minimum number of digits for which separators are removed.
const LONG: usize = 7;

/// Joins groups of digits into one number if they are a date or a telephone number. A date has two groups of
/// one or two digits, padded to two digits each, and one group of four. A telephone number has at least seven
/// digits in groups of at least two. Its first group may have one digit if there are at least ten digits, as
/// with a country code, or if all other groups have three digits. Addresses of four groups such as
/// 192.168.1.10 are not joined.
fn joined(groups: &str) -> Option<String> {
    let parts: Vec<&str> = groups.split(' ').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.chars().count()).collect();
    let digits: usize = lengths.iter().sum();
    if !parts.iter().all(|part| part.chars().all(char::is_numeric)) {
        return None;
    }
    if matches!(lengths[..], [4, 1..=2, 1..=2] | [1..=2, 1..=2, 4]) {
        return Some(parts.iter().map(|part| format!("{part:0>2}")).collect());
    }
    let is_address = parts.len() == 4 && lengths.iter().all(|length| *length <= 3);
    let first = lengths[0] > 1 || digits >= 10 || lengths[1..].iter().all(|length| *length == 3);
    let whole = parts.len() == 1 || (!is_address && first && lengths[1..].iter().all(|length| *length > 1));
    (digits >= LONG && whole).then(|| parts.concat())
}

/// Returns a cell without joining characters, and with a blank between a digit and a following fraction or
/// raised digit.
fn plain(cell: &str) -> Cow<'_, str> {
    if cell.is_ascii() {
        return Cow::Borrowed(cell);
    }
    let mut plain = String::with_capacity(cell.len());
    for sign in cell.chars().filter(|sign| !is_joiner(*sign)) {
        let is_raised = sign.is_numeric()
            && !sign.is_ascii_digit()
            && !sign.is_alphabetic()
            && sign.nfkd().any(|plain| plain.is_ascii_digit());
        let full_width = matches!(u32::from(sign), 0xff10..=0xff19);
        if is_raised && !full_width && plain.ends_with(|last: char| last.is_ascii_digit()) {
            plain.push(' ');
        }
        // The decomposition of this character is a blank with an accent.
        plain.push(if sign == '\u{b4}' { '\'' } else { sign });
    }
    Cow::Owned(plain)
}

/// Returns the number in a cell without letters, in one spelling, or `None` if the cell is not written as a
/// number.
fn number(cell: &str) -> Option<String> {
    let text: String = cell.nfkc().collect();
    let around = |sign: char| is_unit(sign) || sign.is_whitespace();
    let text = text.trim_matches(around);
    let (minus, text) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (true, rest.trim_start_matches(around)),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // Groups of three digits; the first group has one to three.
    let in_groups = |text: &str, between: char| {
        let mut groups = text.split(between);
        let first = groups.next().unwrap_or_default();
        is_whole(first)
            && first.len() <= 3
            && !first.starts_with('0')
            && groups.all(|group| is_whole(group) && group.len() == 3)
    };
    let count = |sign: char| text.matches(sign).count();
    let (whole, part) = match (count('.'), count(',')) {
        (0, 0) => (text.to_string(), ""),
        (1, 0) => text.split_once('.').map(|(whole, part)| (whole.to_string(), part))?,
        (0, 1) if in_groups(text, ',') => (text.replace(',', ""), ""),
        (0, 1) => text.split_once(',').map(|(whole, part)| (whole.to_string(), part))?,
        (0, _) if in_groups(text, ',') => (text.replace(',', ""), ""),
        (1, _) if text.rfind('.') > text.rfind(',') => {
            let (whole, part) = text.split_once('.')?;
            in_groups(whole, ',').then(|| (whole.replace(',', ""), part))?
        }
        (_, 1) if text.rfind(',') > text.rfind('.') => {
            let (whole, part) = text.split_once(',')?;
            in_groups(whole, '.').then(|| (whole.replace('.', ""), part))?
        }
        _ => return None,
    };
    let whole = if whole.is_empty() && !part.is_empty() { "0" } else { &whole };
    if !is_whole(whole) || !(part.is_empty() || is_whole(part)) {
        return None;
    }
    let part = part.trim_end_matches('0');
    // Leading zeros are insignificant in a number with a fraction, but significant in a code.
    let is_fraction = text.contains(['.', ',']) && text.len() > whole.len();
    let trimmed = if is_fraction { whole.trim_start_matches('0') } else { whole };
    let whole = if trimmed.is_empty() { "0" } else { trimmed };
    let sign = if minus && (whole != "0" || !part.is_empty()) { "-" } else { "" };
    Some(if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") })
}

/// Returns true for units that may surround a number.
fn is_unit(sign: char) -> bool {
    matches!(sign, '%' | '#' | '\u{b0}' | '\u{20a0}'..='\u{20cf}' | '$' | '\u{a3}' | '\u{a5}' | '\u{a2}')
}

/// Returns true for Latin, Greek and Cyrillic letters, whose accents are folded.
fn is_folded(sign: char) -> bool {
    matches!(u32::from(sign), 0x41..=0x5a | 0x61..=0x7a | 0xc0..=0x24f | 0x250..=0x2af | 0x370..=0x3ff | 0x400..=0x52f
        | 0x1c80..=0x1c8f | 0x1d00..=0x1dbf | 0x1e00..=0x1eff | 0x1f00..=0x1fff | 0x2c60..=0x2c7f | 0x2de0..=0x2dff
        | 0xa640..=0xa69f | 0xa720..=0xa7ff | 0xab30..=0xab6f)
}

/// Returns true if a mark is an accent rather than a vowel sign or voicing mark.
fn is_accent(sign: char) -> bool {
    matches!(u32::from(sign), 0x300..=0x36f | 0x483..=0x489 | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

/// Returns true for characters that control the shape or direction of letters.
fn is_joiner(sign: char) -> bool {
    matches!(u32::from(sign), 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2069 | 0xfe00..=0xfe0f | 0xfeff | 0xe0100..=0xe01ef)
}

/// Returns true for apostrophes and similar characters that do not split a word.
fn is_apostrophe(sign: char) -> bool {
    matches!(
        sign,
        '\'' | '`' | '\u{b4}' | '\u{2b9}'..='\u{2bd}' | '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}'
    )
}

/// Returns the plain spelling of a Latin letter without a decomposition.
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

/// Returns true if a character is a word or a syllable by itself: a Chinese character or kana.
pub(crate) fn is_ideograph(sign: char) -> bool {
    matches!(u32::from(sign), 0x3041..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Returns true if a normal form consists of digits alone: a number, a date or a telephone number.
pub fn is_number(normal: &str) -> bool {
    !normal.is_empty() && normal.bytes().all(|byte| byte.is_ascii_digit())
}

/// Texts of the rows of a table.
#[derive(Debug)]
pub struct TextRows<'a, T> {
    /// Cells, row by row.
    pub cells: &'a [T],
    /// Number of cells in each row.
    pub fields: usize,
}

/// Calls `take` with each q-gram of a normal form, padded with q - 1 blanks on both sides so that the ends of
/// a value weigh as much as its middle. An empty value has no q-grams.
pub fn qgrams(normal: &str, q: usize, mut take: impl FnMut(&[char])) {
    if normal.is_empty() || q == 0 {
        return;
    }
    let pad = std::iter::repeat_n(' ', q - 1);
    let signs: Vec<char> = pad.clone().chain(normal.chars()).chain(pad).collect();
    signs.windows(q).for_each(&mut take);
}

/// Returns `columns` numbers for each record of `fields` texts, row by row. Every q-gram (q = 2) of every
/// field adds a vector of random signs that depends only on the q-gram and the field. The sum is divided by
/// the square root of the number of q-grams. The squared distance between two records then estimates the
/// share of q-grams that they do not have in common. An empty record is at the origin.
pub fn sketch<T: AsRef<str>>(cells: &[T], fields: usize, columns: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(cells.len() / fields.max(1) * columns);
    for row in cells.chunks_exact(fields.max(1)) {
        let mut sums = vec![0.0; columns];
        let mut count = 0.0f64;
        for (field, cell) in row.iter().enumerate() {
            qgrams(&normalise(cell.as_ref()), 2, |gram| {
                count += 1.0;
                // FNV-1a, then the finaliser of SplitMix64 for every 64 signs.
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
        check(
            &["O'Brien", " o\u{2019}brien ", "O\u{2018}Brien", "o\u{2bc}brien", "O\u{b4}Brien", "OBRIEN"],
            "obrien",
        );
        check(&["Müller", "MU\u{308}LLER", "muller"], "muller");
        check(&["Straße 5", "strasse, 5"], "strasse 5");
        check(&["Ørsted-Łuk", "orsted luk"], "orsted luk");
        check(&["310/246-1501", "310 246 1501", "3102461501"], "3102461501");
        check(&["1990-02-03", "19900203"], "19900203");
        check(&["Arnie & Morton's", "arnie and mortons"], "arnie and mortons");
        check(&["", "  ", "-", "?", "...", "%"], "");
        check(&["北京 市"], "北京 市");
        check(&["Αθήνα", "ΑΘΗΝΑ"], "αθηνα");
        check(&["Γιώργος", "ΓΙΩΡΓΟΣ"], "γιωργοσ");
        check(&["Сергей", "СЕРГЕИ"], "сергеи");
        check(&["ﬁne", "Ｆｉｎｅ", "fi\u{ad}ne"], "fine");
    }

    #[test]
    fn numbers_have_one_spelling_and_are_not_digits_alone() {
        let check = |cells: &[&str], expected: &str| {
            for cell in cells {
                assert_eq!(normalise(cell), expected, "{cell:?}");
            }
        };
        check(&["1.5", "1,5", "1.50", "+1.5", "01.5", "$1.50", "1.5 %"], "1.5");
        check(&["15", "15.0", "15.", "+15", "€ 15,00"], "15");
        check(&["-5", "\u{2212}5", "-5.0", "-$5", "- 5"], "-5");
        check(&["0", "-0", "0.00", "-0,0", ".0"], "0");
        check(&[".5", "0.5", "0,50"], "0.5");
        check(&["1234.5", "1,234.50", "1.234,5"], "1234.5");
        check(&["1234567", "1,234,567", "1 234 567", "1,234,567.0"], "1234567");
        check(&["0.123", "0,123", ",123"], "0.123");
        check(&["\u{200e}-5", "\u{feff}-5", "-5\u{200b}"], "-5");
        check(&["1½", "1 ½"], "1 1 2");
        check(&["10²"], "10 2");
        check(&["12/345", "12 345"], "12 345");
        check(&["12/3"], "12 3");
        check(&["3-4", "3 4"], "3 4");
        check(&["007"], "007");
        check(&["1.2.3", "1/2/3"], "1 2 3");
        check(&["310.246.1501", "310/246-1501", "(310) 246-1501"], "3102461501");
        check(&["1990-02-03", "1990.02.03", "1990/02/03", "1990-2-3"], "19900203");
        check(&["1/11/2000", "01.11.2000"], "01112000");
        check(&["11/1/2000"], "11012000");
        check(&["192.168.1.10"], "192 168 1 10");
        check(&["192.168.11.0"], "192 168 11 0");
        check(&["12345678/9"], "12345678 9");
        check(&["1-310-246-1501", "13102461501"], "13102461501");
        check(&["1,23,456"], "1 23 456");
    }

    #[test]
    fn the_normal_form_of_a_normal_form_is_itself() {
        let signs: Vec<char> =
            "aB\u{e9}\u{301}'\u{2019} -./,&0123459½²ßΣς\u{200e}राकिがカ한\u{fe0f}$%".chars().collect();
        let mut state = 1u64;
        for _ in 0..200_000 {
            let mut next = || {
                state = crate::mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
                state as usize
            };
            let length = 1 + next() % 12;
            let cell: String = (0..length).map(|_| signs[next() % signs.len()]).collect();
            let normal = normalise(&cell);
            assert_eq!(normalise(&normal), normal, "{cell:?}");
        }
    }

    #[test]
    fn names_such_as_null_are_names() {
        for (cell, expected) in [
            ("Null", "null"),
            ("Na", "na"),
            ("None", "none"),
            ("Nan", "nan"),
            ("Unknown", "unknown"),
            ("N/A", "n a"),
        ] {
            assert_eq!(normalise(cell), expected);
        }
    }

    #[test]
    fn marks_of_other_scripts_are_letters() {
        let differ = |one: &str, other: &str| assert_ne!(normalise(one), normalise(other), "{one} {other}");
        differ("राम", "रमा");
        differ("राम", "रम");
        differ("कि", "की");
        differ("か", "が");
        differ("ハ", "パ");
        differ("กา", "กี");
        differ("한", "하");
        assert_eq!(normalise("क्\u{200d}ष"), normalise("क्ष"), "joiners make no difference");
        assert_eq!(normalise("राम कुमार").split(' ').count(), 2, "marks do not split words");
        assert_eq!(normalise("が"), normalise("か\u{3099}"));
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
