//! Converts text cells to points in time, and back. Formats that are inferred have only one reading; any
//! other format must be given.

use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, NaiveDate};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 0000-01-01 and 10000-01-01 in microseconds since 1970.
const YEARS: std::ops::Range<i64> = -719_528 * DAY..2_932_897 * DAY;

/// Parsed date, with properties of its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Written {
    /// Microseconds since 1970-01-01 UTC.
    pub(crate) at: i64,
    /// True for the form day.month.year with dots.
    pub(crate) dotted: bool,
    /// `None` for a date without a time; otherwise true if the time has a zone.
    pub(crate) zoned: Option<bool>,
    /// True if digits finer than a microsecond were cut off.
    pub(crate) finer: bool,
}

/// Parses an ISO 8601 date or date-time (with `T` or a space, with or without a zone; UTC without one),
/// YYYY/MM/DD, or DD.MM.YYYY. The last two may have a time, too.
pub(crate) fn date(cell: &str) -> Option<Written> {
    let bytes = cell.as_bytes();
    if bytes.len() < 10 || !bytes.is_ascii() {
        return None;
    }
    let (day, dotted) = match (bytes[4], bytes[7], bytes[2], bytes[5]) {
        (b'-', b'-', ..) | (b'/', b'/', ..) => {
            ((digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..10])?), false)
        }
        (_, _, b'.', b'.') => ((digits(&bytes[6..10])?, digits(&bytes[3..5])?, digits(&bytes[..2])?), true),
        _ => return None,
    };
    let days = days(day.0, day.1, day.2)?;
    let mut written = Written { at: days * DAY, dotted, zoned: None, finer: false };
    if bytes.len() > 10 {
        if !matches!(bytes[10], b'T' | b't' | b' ') {
            return None;
        }
        let (clock, rest, finer) = clock(&bytes[11..])?;
        let offset = zone(rest)?;
        written.at += clock - offset.unwrap_or(0);
        written.zoned = Some(offset.is_some());
        written.finer = finer;
    }
    YEARS.contains(&written.at).then_some(written)
}

/// Date format given by the caller.
#[derive(Debug)]
pub(crate) struct Format(Vec<Item<'static>>);

impl Format {
    /// Parses a format. Returns `None` if a part of `format` is not part of a date, or if `format` has no
    /// field at all.
    pub(crate) fn new(format: &str) -> Option<Self> {
        let items = StrftimeItems::new(format).parse_to_owned().ok()?;
        let is_field = |item: &Item| matches!(item, Item::Numeric(..) | Item::Fixed(_));
        items.iter().any(is_field).then_some(Self(items))
    }

    /// Parses `cell` to microseconds since 1970.
    pub(crate) fn date(&self, cell: &str) -> Option<i64> {
        let mut parsed = Parsed::new();
        parse(&mut parsed, cell, self.0.iter()).ok()?;
        // `%Y` also accepts fewer than four digits, so that "20" would be the year 20.
        if parsed.year().is_some_and(|year| year < 1_000) {
            return None;
        }
        let offset = parsed.offset().unwrap_or(0);
        let at = match parsed.to_naive_datetime_with_offset(offset) {
            Ok(local) => local.and_utc().timestamp_micros() - i64::from(offset) * SECOND,
            Err(_) => parsed.to_naive_date().ok()?.and_hms_opt(0, 0, 0)?.and_utc().timestamp_micros(),
        };
        YEARS.contains(&at).then_some(at)
    }
}

/// Returns true if `format` can parse dates.
pub(crate) fn is_format(format: &str) -> bool {
    Format::new(format).is_some()
}

/// Returns true if a table may contain this point in time, in the years 0 to 9999.
#[cfg(feature = "columnar")]
pub(crate) fn is_held(microseconds: i64) -> bool {
    YEARS.contains(&microseconds)
}

/// Formats a point in time as ISO 8601: the date alone at midnight, otherwise with the time in UTC.
pub(crate) fn text(microseconds: i64) -> String {
    match DateTime::from_timestamp_micros(microseconds) {
        Some(at) if microseconds.rem_euclid(DAY) == 0 => at.format("%Y-%m-%d").to_string(),
        Some(at) => at.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string(),
        None => format!("{microseconds} microseconds"),
    }
}

/// Parses a time of day, HH:MM or H:MM with or without seconds, to hours. Times after 24:00 are invalid.
pub(crate) fn hours(cell: &str) -> Option<f64> {
    let padded = if cell.as_bytes().get(1) == Some(&b':') { format!("0{cell}") } else { cell.to_string() };
    let (micros, rest, _) = clock(padded.as_bytes())?;
    rest.is_empty().then(|| micros as f64 / (3600.0 * SECOND as f64))
}

fn digits(bytes: &[u8]) -> Option<u32> {
    bytes
        .iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0')))
}

fn days(year: u32, month: u32, day: u32) -> Option<i64> {
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    Some(date.signed_duration_since(NaiveDate::default()).num_days())
}

/// Parses HH:MM, with optional :SS and fraction. Returns microseconds, the rest of the bytes, and true if
/// digits were cut off.
fn clock(bytes: &[u8]) -> Option<(i64, &[u8], bool)> {
    let [h1, h2, b':', m1, m2, rest @ ..] = bytes else { return None };
    let (hour, minute) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    let (second, rest) = match rest {
        [b':', s1, s2, rest @ ..] => (digits(&[*s1, *s2])?, rest),
        _ => (0, rest),
    };
    // A leap second is the first second of the next minute; 24:00 is the next midnight.
    let midnight = hour == 24 && minute == 0 && second == 0;
    if (hour > 23 && !midnight) || minute > 59 || second > 60 {
        return None;
    }
    let (mut micros, mut rest, mut finer) = (0, rest, false);
    if let [b'.' | b',', fraction @ ..] = rest {
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 || length > 18 {
            return None;
        }
        for place in 0..6 {
            micros = micros * 10 + fraction[..length].get(place).map_or(0, |byte| i64::from(byte - b'0'));
        }
        finer = fraction[..length].iter().skip(6).any(|byte| *byte != b'0');
        rest = &fraction[length..];
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some((seconds * SECOND + micros, rest, finer))
}

/// Parses the zone's offset in microseconds. The inner `None` means that the text lacks a zone.
fn zone(bytes: &[u8]) -> Option<Option<i64>> {
    let (sign, hour, minute) = match bytes {
        [] => return Some(None),
        [b'Z' | b'z'] => return Some(Some(0)),
        [sign, h1, h2] => (sign, [*h1, *h2], [b'0', b'0']),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => (sign, [*h1, *h2], [*m1, *m2]),
        _ => return None,
    };
    let (hour, minute) = (digits(&hour)?, digits(&minute)?);
    let offset = i64::from(hour * 3600 + minute * 60) * SECOND;
    match sign {
        _ if hour > 23 || minute > 59 => None,
        b'+' => Some(Some(offset)),
        b'-' => Some(Some(-offset)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dates_in_inferred_formats() {
        let check = |cell: &str, expected: Option<&str>| {
            assert_eq!(date(cell).map(|written| text(written.at)).as_deref(), expected, "{cell}");
        };
        check("2024-02-29", Some("2024-02-29"));
        check("2023-02-29", None);
        check("1969-12-31", Some("1969-12-31"));
        check("0000-01-01", Some("0000-01-01"));
        check("9999-12-31T23:59:59.999999Z", Some("9999-12-31T23:59:59.999999Z"));
        check("9999-12-31T23:59:59-01:00", None);
        check("2024/03/05", Some("2024-03-05"));
        check("2024-03/05", None);
        check("05.03.2024", Some("2024-03-05"));
        check("31.04.2024", None);
        check("05/03/2024", None);
        check("05-03-2024", None);
        check("20240305", None);
        check("2024-03", None);
        check("2024-03-05T10:20", Some("2024-03-05T10:20:00Z"));
        check("2024-03-05 10:20:30.5", Some("2024-03-05T10:20:30.500Z"));
        check("2024-03-05T10:20:30+02:00", Some("2024-03-05T08:20:30Z"));
        check("2024-03-05T00:20:30+0530", Some("2024-03-04T18:50:30Z"));
        check("2024-03-05T10:20:30-02", Some("2024-03-05T12:20:30Z"));
        check("2024-03-05T24:00", Some("2024-03-06"));
        check("2024-03-05T24:01", None);
        check("2016-12-31T23:59:60Z", Some("2017-01-01"));
        check("2024-03-05T10", None);
        check("2024-03-05T10:20:30.", None);
        check("2024-03-05T10:20:30 CET", None);
        check("2024-03-05x10:20:30", None);
        check("05.03.2024 10:20", Some("2024-03-05T10:20:00Z"));
        check("2024-03-0５", None);
        check("+024-03-05", None);
        assert_eq!(date("2024-03-05T10:20:30.1234567").map(|written| written.finer), Some(true));
        assert_eq!(date("2024-03-05T10:20:30.1234560").map(|written| written.finer), Some(false));
    }

    #[test]
    fn reads_dates_in_given_formats() {
        let check = |format: &str, cell: &str, expected: Option<&str>| {
            let format = Format::new(format).expect("a form of dates");
            assert_eq!(format.date(cell).map(text).as_deref(), expected, "{cell}");
        };
        check("%d/%m/%Y", "05/03/2024", Some("2024-03-05"));
        check("%m/%d/%Y", "05/03/2024", Some("2024-05-03"));
        check("%d/%m/%Y", "05/13/2024", None);
        check("%d/%m/%Y", "05/03/24", None);
        check("%d/%m/%Y", "05/03/024", None);
        check("%d/%m/%y", "05/03/24", Some("2024-03-05"));
        check("%d/%m/%Y %H:%M", "05/03/2024 10:20", Some("2024-03-05T10:20:00Z"));
        check("%d/%m/%Y %H:%M %z", "05/03/2024 10:20 +0200", Some("2024-03-05T08:20:00Z"));
        check("%s", "86400", Some("1970-01-02"));
        check("%Y%m%d", "20240305", Some("2024-03-05"));
        check("%d %b %Y", "5 Mar 2024", Some("2024-03-05"));
        assert!(!is_format("%Q") && !is_format("day") && !is_format(""));
    }
}
