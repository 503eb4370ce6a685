//! Salting by a stable attribute: the bits of a q-gram depend on the record's stratum, such as the year of
//! birth (Niedermeyer, Steinmetzer, Kroll, Schnell 2014).
//!
//! The frequency of a name is then its frequency among the records of one stratum. Records of different
//! strata share bits only by chance, so that a record with a missing or wrong attribute is not linked.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::near::Near;
use crate::text::normalise;

/// Attribute that divides records into strata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Salt {
    /// The column of the attribute, from 0.
    pub column: usize,
    /// Number of leading characters of the normal form that count; 0 for all.
    pub signs: usize,
}

/// Returns the stratum of a record, or `None` if its attribute is missing. Without salting, all records
/// belong to one stratum.
pub(super) fn stratum<T: AsRef<str>>(
    salt: Option<Salt>,
    near: &[Option<Near>],
    cells: &[T],
) -> Option<String> {
    let Some(Salt { column, signs }) = salt else { return Some(String::new()) };
    let normal = normalise(cells[column].as_ref());
    // Two spellings of a date belong to the same stratum.
    let date = near.get(column).copied().flatten().and_then(|near| near.year_month_day(&normal));
    let normal = date.unwrap_or(normal);
    let taken = if signs == 0 { usize::MAX } else { signs };
    (!normal.is_empty()).then(|| normal.chars().take(taken).collect())
}

/// Returns the key that hashes the q-grams of a stratum; the parties' own key without a stratum.
pub(super) fn mac(own: &Hmac<Sha256>, stratum: &str) -> Hmac<Sha256> {
    if stratum.is_empty() {
        return own.clone();
    }
    let mut mac = own.clone();
    mac.update(b"fet clk salt");
    mac.update(stratum.as_bytes());
    Hmac::new_from_slice(&mac.finalize().into_bytes()).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitTable;
    use crate::clk::{Encoder, EncoderSettings, Hardening, Schema};

    const BORN: Salt = Salt { column: 1, signs: 4 };

    fn encode(salt: Option<Salt>, cells: &[&str]) -> BitTable {
        let settings = EncoderSettings { bits: 1_024, q: 2, hardening: Hardening::None };
        let mut schema = Schema::of_groups(2, &[]);
        schema.fields.iter_mut().for_each(|field| field.hashes = 10);
        Encoder::new(settings, b"a secret of two", &schema).salted(salt).encode(cells)
    }

    fn common(table: &BitTable, a: usize, b: usize) -> u32 {
        table.row(a).iter().zip(table.row(b)).map(|(a, b)| (a & b).count_ones()).sum()
    }

    #[test]
    fn a_stratum_is_a_prefix_of_the_attribute() {
        let of = |salt, cell: &str| stratum(salt, &[], &["smith", cell]);
        for spelt in ["1956-04-09", "19560409", " 1956.4.9 ", "1956"] {
            assert_eq!(of(Some(BORN), spelt), Some("1956".into()), "{spelt:?}");
        }
        let born = [None, Some(Near { reach: 30.0, dates: true })];
        for spelt in ["1956-04-09", "1956/4/9", "19560409"] {
            assert_eq!(stratum(Some(BORN), &born, &["smith", spelt]), Some("1956".into()), "{spelt:?}");
        }
        assert_eq!(of(Some(Salt { signs: 0, ..BORN }), "NSW "), Some("nsw".into()));
        assert_eq!(of(Some(BORN), " - "), None);
        assert_eq!(of(None, ""), Some(String::new()));
    }

    #[test]
    fn strata_share_bits_only_by_chance() {
        let cells = ["smith", "1956-04-09", "smith", "1956-12-01", "smith", "1957-04-09", "smith", ""];
        let (plain, salted) = (encode(None, &cells), encode(Some(BORN), &cells));
        // A name of five letters has six padded bigrams of ten bits each. Some of these bits coincide.
        assert!(common(&plain, 0, 2) > 100 && common(&plain, 0, 3) > 50);
        assert!(common(&salted, 0, 1) > 50, "the name, and the year in part");
        // Each record has 130 of 1,024 bits, so 16 are in common by chance on average; 34 is five standard
        // deviations above.
        assert!(common(&salted, 0, 2) < 34, "{}", common(&salted, 0, 2));
        assert_eq!(salted.ones(3), 0, "a record without the attribute sets no bits");
    }

    #[test]
    fn salting_keeps_the_similarity_within_a_stratum() {
        let cells = ["smith", "1956-04-09", "smyth", "1956-04-09"];
        let (plain, salted) = (encode(None, &cells), encode(Some(BORN), &cells));
        // Both tables have about 120 bits in common; different positions collide differently.
        assert!(common(&plain, 0, 1).abs_diff(common(&salted, 0, 1)) < 15);
        assert_ne!(plain, salted);
    }
}
