//! Names of runs and parties, and the subjects that contain them.
//!
//! A name becomes a token of a subject. It has no dot, space or wildcard, so that a name cannot reach another
//! party's subject.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a name, in bytes.
const LONGEST: usize = 64;

/// Name of a run or a party: 1 to 64 letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Text that is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a valid name of a run or a party: use 1 to {LONGEST} of the characters A-Z, a-z, 0-9, _ and -"
)]
pub struct NameError(String);

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=LONGEST).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError(text.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Run and ends of a link. Both ends must agree on them, or no session begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The run.
    pub run: Name,
    /// The primary.
    pub primary: Name,
    /// The party at the other end.
    pub party: Name,
}

impl Route {
    /// Returns the subject on which only the primary publishes.
    pub fn to_party(&self) -> String {
        to_party(&self.run, &self.party)
    }

    /// Returns the subject on which only the party publishes.
    pub fn from_party(&self) -> String {
        from_party(&self.run, &self.party)
    }
}

/// Returns the subject from the primary to a party.
pub(crate) fn to_party(run: &Name, party: &Name) -> String {
    format!("fet.{run}.to.{party}")
}

/// Returns the subject from a party to the primary.
pub(crate) fn from_party(run: &Name, party: &Name) -> String {
    format!("fet.{run}.from.{party}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_token() {
        let longest = "a".repeat(LONGEST);
        for name in ["a", "bank-1", "A_b", "0", &longest] {
            assert_eq!(name.parse::<Name>().map(|name| name.to_string()).as_deref(), Ok(name));
        }
        let too_long = "a".repeat(LONGEST + 1);
        for text in ["", ".", "a.b", "*", ">", "a b", "a\n", "é", "a\0", &too_long] {
            assert_eq!(text.parse::<Name>(), Err(NameError(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn a_route_has_two_subjects() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let route = Route { run: name("r"), primary: name("bank"), party: name("shop") };
        assert_eq!([route.to_party(), route.from_party()], ["fet.r.to.shop", "fet.r.from.shop"]);
    }
}
