//! Dates as parsed by Python's `strptime`, normalised to year, month and day.
//!
//! As in Python, a format becomes a regular expression, so that it matches the same texts. Weekdays and times
//! of day are checked and then ignored. Directives that depend on the machine's locale or time zone, and week
//! numbers, are refused.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Captures, Regex};

use super::python;

/// A format of dates.
#[derive(Debug, Clone)]
pub(super) struct DateFormat {
    expression: Regex,
    directives: String,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

impl DateFormat {
    /// Parses a format. Fails with the rule that the format breaks.
    pub(super) fn parse(format: &str) -> Result<Self, String> {
        let mut expression = String::from(r"\A(?i:");
        let mut directives = String::new();
        let mut signs = format.chars().peekable();
        while let Some(sign) = signs.next() {
            match sign {
                '%' => directive(signs.next(), &mut expression, &mut directives)?,
                sign if is_space(sign) => spaces(&mut signs, &mut expression),
                sign => expression.push_str(&regex::escape(sign.encode_utf8(&mut [0; 4]))),
            }
        }
        expression.push(')');
        let expression =
            Regex::new(&expression).map_err(|error| format!("must be a format of dates: {error}"))?;
        Ok(Self { expression, directives })
    }

    /// Returns a date as clkhash hashes it: `%Y%m%d` as written by Python on Linux, without leading zeros for
    /// years before 1000.
    pub(super) fn normal(&self, text: &str) -> Option<String> {
        let found = self.expression.captures(text)?;
        let whole = found.get(0)?.end() == text.len();
        let (year, month, day) = whole.then(|| self.date(&found)).flatten()?;
        Some(format!("{year}{month:02}{day:02}"))
    }

    fn date(&self, found: &Captures<'_>) -> Option<(u32, u32, u32)> {
        let (mut year, mut month, mut day, mut ordinal) = (None, 1, 1, None);
        for directive in self.directives.chars() {
            let text = found.name(directive.encode_utf8(&mut [0; 4]))?.as_str();
            let number = || python::integer(text)?.parse::<u32>().ok();
            match directive {
                'Y' => year = Some(number()?),
                'y' => {
                    year = Some(number()?).map(|short| if short <= 68 { 2000 + short } else { 1900 + short })
                }
                'm' => month = number()?,
                'B' => month = place(&MONTHS, text, usize::MAX)?,
                'b' => month = place(&MONTHS, text, 3)?,
                'd' => day = number()?,
                'j' => ordinal = Some(number()?),
                'A' => drop(place(&DAYS, text, usize::MAX)?),
                'a' => drop(place(&DAYS, text, 3)?),
                // strptime accepts leap seconds, but then no such time exists.
                'S' if number()? > 59 => return None,
                _ => {}
            }
        }
        // Without a year the year is 1900, which lacks 29 February. In that case only the day of the year is
        // looked up in a leap year.
        let leap_day = year.is_none() && (month, day) == (2, 29);
        let known = year.unwrap_or(if leap_day { 1904 } else { 1900 });
        let (known, month, day) = match ordinal {
            Some(ordinal) => from_ordinal(known, ordinal),
            None => (known, month, day),
        };
        let known = if leap_day { 1900 } else { known };
        ((1..=9999).contains(&known) && (1..=length(known, month)).contains(&day))
            .then_some((known, month, day))
    }
}

/// A run of white space matches any run of white space.
fn spaces(signs: &mut Peekable<Chars<'_>>, expression: &mut String) {
    while signs.next_if(|sign| is_space(*sign)).is_some() {}
    expression.push_str(r"[\s\x1c-\x1f]+");
}

/// Returns true for white space in Python's regular expressions.
fn is_space(sign: char) -> bool {
    sign.is_whitespace() || ('\x1c'..='\x1f').contains(&sign)
}

/// Appends the pattern of a directive as a named group.
fn directive(name: Option<char>, expression: &mut String, directives: &mut String) -> Result<(), String> {
    let name = name.ok_or("must not end in a single %")?;
    let names = |list: &[&str], length: usize| {
        let mut list: Vec<&str> = list.iter().map(|name| &name[..name.len().min(length)]).collect();
        list.sort_by_key(|name| std::cmp::Reverse(name.len()));
        list.join("|")
    };
    let matched = match name {
        '%' => {
            expression.push('%');
            return Ok(());
        }
        'd' => r"3[0-1]|[1-2]\d|0[1-9]|[1-9]| [1-9]".into(),
        'f' => r"[0-9]{1,6}".into(),
        'H' => r"2[0-3]|[0-1]\d|\d".into(),
        'I' => r"1[0-2]|0[1-9]|[1-9]".into(),
        'j' => r"36[0-6]|3[0-5]\d|[1-2]\d\d|0[1-9]\d|00[1-9]|[1-9]\d|0[1-9]|[1-9]".into(),
        'm' => r"1[0-2]|0[1-9]|[1-9]".into(),
        'M' => r"[0-5]\d|\d".into(),
        'S' => r"6[0-1]|[0-5]\d|\d".into(),
        'w' => r"[0-6]".into(),
        'u' => r"[1-7]".into(),
        'y' => r"\d\d".into(),
        'Y' => r"\d\d\d\d".into(),
        'p' => "am|pm".into(),
        'A' => names(&DAYS, usize::MAX),
        'a' => names(&DAYS, 3),
        'B' => names(&MONTHS, usize::MAX),
        'b' => names(&MONTHS, 3),
        'U' | 'W' | 'V' | 'G' | 'z' | 'Z' | 'c' | 'x' | 'X' => {
            return Err(format!("must not use %{name}, which is not supported"));
        }
        _ => return Err(format!("must not use %{name}, which strptime does not have")),
    };
    if directives.contains(name) {
        return Err(format!("must not use %{name} twice"));
    }
    directives.push(name);
    expression.push_str(&format!("(?P<{name}>{matched})"));
    Ok(())
}

/// Returns the place of a name, counted from 1, among names of at most `length` letters.
fn place(names: &[&str], text: &str, length: usize) -> Option<u32> {
    let text = text.to_lowercase();
    let place = names.iter().position(|name| name[..name.len().min(length)] == text)?;
    Some(place as u32 + 1)
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Returns the number of days of a month.
fn length(year: u32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the date of a day of a year. The day after the last is the first of the next year.
fn from_ordinal(year: u32, ordinal: u32) -> (u32, u32, u32) {
    let mut rest = ordinal;
    for month in 1..=12 {
        if rest <= length(year, month) {
            return (year, month, rest);
        }
        rest -= length(year, month);
    }
    (year + 1, 1, rest)
}
