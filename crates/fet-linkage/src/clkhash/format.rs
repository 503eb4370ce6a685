//! Formats of a feature: its permitted values, and the normalised form of each that is hashed.

use std::borrow::Cow;
use std::collections::HashSet;

use regex::Regex;

use super::date::DateFormat;
use super::json::{Node, Object, SchemaError};
use super::{pattern, python};

/// Format of a feature's values.
#[derive(Debug, Clone)]
pub(super) enum Format {
    /// Text that matches a regular expression.
    Pattern(Regex, String),
    /// Text of a limited length and a given case.
    Text {
        /// Minimum number of code points.
        least: usize,
        /// Maximum number of code points, if limited.
        most: Option<usize>,
        /// Required case.
        case: Case,
    },
    /// An integer with optional bounds.
    Integer(Option<i64>, Option<i64>),
    /// A date and its format.
    Date(DateFormat, String),
    /// One of a set of texts.
    Enum(HashSet<String>),
}

/// Case of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
    Mixed,
}

/// Encoding of text as the bytes that are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Ascii,
    Utf8,
    Utf16,
    Utf32,
}

impl Encoding {
    const NAMES: [&str; 4] = ["ascii", "utf-8", "utf-16", "utf-32"];

    fn parse(object: &Object<'_>) -> Result<Self, SchemaError> {
        let Some(node) = object.get("encoding") else { return Ok(Self::Utf8) };
        Ok([Self::Ascii, Self::Utf8, Self::Utf16, Self::Utf32][node.choice(&Self::NAMES)?])
    }

    /// Returns true if the encoding can represent a text.
    pub(super) fn writes(self, text: &str) -> bool {
        self != Self::Ascii || text.is_ascii()
    }

    /// Appends the bytes of a text as Python writes them: little-endian, after a byte order mark.
    pub(super) fn write(self, text: &str, bytes: &mut Vec<u8>) {
        match self {
            Self::Ascii | Self::Utf8 => bytes.extend_from_slice(text.as_bytes()),
            Self::Utf16 => {
                let units = std::iter::once(0xfeff).chain(text.encode_utf16());
                bytes.extend(units.flat_map(u16::to_le_bytes));
            }
            Self::Utf32 => {
                let units = std::iter::once(0xfeff).chain(text.chars().map(u32::from));
                bytes.extend(units.flat_map(u32::to_le_bytes));
            }
        }
    }
}

impl Format {
    pub(super) fn parse(node: &Node<'_>) -> Result<(Self, Encoding), SchemaError> {
        let format = match node.property("type")?.choice(&["string", "integer", "date", "enum"])? {
            0 => return Self::text(node),
            1 => {
                let object = node.object(&["type", "minimum", "maximum", "description"])?;
                described(&object)?;
                let bound = |name| object.get(name).map(|node| node.whole(i64::MIN..=i64::MAX)).transpose();
                Self::Integer(bound("minimum")?, bound("maximum")?)
            }
            2 => {
                let object = node.object(&["type", "format", "description"])?;
                described(&object)?;
                let format = object.need("format")?;
                let text = format.text()?;
                Self::Date(DateFormat::parse(text).map_err(|rule| format.refuse(rule))?, text.into())
            }
            _ => {
                let object = node.object(&["type", "values", "description"])?;
                described(&object)?;
                let values = object.need("values")?.items()?;
                Self::Enum(values.iter().map(|item| item.text().map(String::from)).collect::<Result<_, _>>()?)
            }
        };
        Ok((format, Encoding::Utf8))
    }

    fn text(node: &Node<'_>) -> Result<(Self, Encoding), SchemaError> {
        if let Ok(pattern) = node.property("pattern") {
            let object = node.object(&["type", "encoding", "pattern", "description"])?;
            described(&object)?;
            let text = pattern.text()?;
            let regex = pattern::whole(text).map_err(|rule| pattern.refuse(rule))?;
            return Ok((Self::Pattern(regex, text.into()), Encoding::parse(&object)?));
        }
        let object = node.object(&["type", "encoding", "case", "minLength", "maxLength", "description"])?;
        described(&object)?;
        let most = 1usize << 40;
        let case =
            match object.get("case").map(|node| node.choice(&["upper", "lower", "mixed"])).transpose()? {
                Some(0) => Case::Upper,
                Some(1) => Case::Lower,
                _ => Case::Mixed,
            };
        let format = Self::Text {
            least: object.get("minLength").map_or(Ok(0), |node| node.count(0..=most))?,
            most: object.get("maxLength").map(|node| node.count(1..=most)).transpose()?,
            case,
        };
        Ok((format, Encoding::parse(&object)?))
    }

    /// Returns the form of a value that is hashed. Fails with the rule that the value breaks.
    pub(super) fn normal<'a>(&self, text: &'a str, encoding: Encoding) -> Result<Cow<'a, str>, String> {
        let keep =
            |right: bool, rule: &dyn Fn() -> String| right.then_some(Cow::Borrowed(text)).ok_or_else(rule);
        if !encoding.writes(text) {
            return Err("must be ASCII".into());
        }
        match self {
            Self::Pattern(regex, pattern) => {
                keep(regex.is_match(text), &|| format!("must match the pattern {pattern:?}"))
            }
            Self::Text { least, most, case } => {
                plain(text, *least, *most, *case).map(|()| Cow::Borrowed(text))
            }
            Self::Integer(least, most) => integer(text, *least, *most).map(Cow::Owned),
            Self::Date(format, written) => {
                let date = format.normal(text).map(Cow::Owned);
                date.ok_or_else(|| format!("must be a date of the form {written:?}"))
            }
            Self::Enum(values) => keep(values.contains(text), &|| {
                let mut values: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
                values.sort();
                format!("must be one of {}", values.join(", "))
            }),
        }
    }
}

/// Checks that an optional description is a string. The description has no effect.
pub(super) fn described(object: &Object<'_>) -> Result<(), SchemaError> {
    object.get("description").map_or(Ok(""), |node| node.text()).map(drop)
}

fn plain(text: &str, least: usize, most: Option<usize>, case: Case) -> Result<(), String> {
    let length = text.chars().count();
    if length < least {
        return Err(format!("must have at least {least} characters"));
    }
    if let Some(most) = most.filter(|most| length > *most) {
        return Err(format!("must have at most {most} characters"));
    }
    match case {
        Case::Upper if text.to_uppercase() != text => Err("must be upper case".into()),
        Case::Lower if text.to_lowercase() != text => Err("must be lower case".into()),
        _ => Ok(()),
    }
}

fn integer(text: &str, least: Option<i64>, most: Option<i64>) -> Result<String, String> {
    let digits = python::integer(text).ok_or("must be an integer")?;
    // A number beyond 128 bits is beyond every bound on its side.
    let beyond = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
    let value = digits.parse().unwrap_or(beyond);
    if let Some(least) = least.filter(|least| value < i128::from(*least)) {
        return Err(format!("must be at least {least}"));
    }
    if let Some(most) = most.filter(|most| value > i128::from(*most)) {
        return Err(format!("must be at most {most}"));
    }
    Ok(digits)
}
