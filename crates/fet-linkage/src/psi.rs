//! Private set intersection: finds the keys that two parties have in common, by Diffie-Hellman on the
//! ristretto group.
//!
//! The parties are two state machines that exchange three messages (Meadows 1986; Huberman, Franklin, Hogg
//! 1999):
//!
//! ```text
//! querier                                         data holder
//!   H(x)^a for each of its keys, in order   --->
//!                                           <---    H(y)^b for each of its distinct keys, padded, shuffled
//!   (H(y)^b)^a, in the order received       --->
//!                                                   (H(x)^a)^b = (H(y)^b)^a: the intersection
//! ```
//!
//! The *data holder* learns which of the querier's keys equal its own keys, and how many keys the
//! querier has. Equal keys within the querier's table are visible as equal. The *querier* learns only
//! the data holder's number of rows. The data holder offers a key that several rows share once, and random
//! elements fill the message up to the number of rows. The message therefore hides how often a key occurs and
//! how many distinct keys there are. Neither party learns anything about a key that the other party does not
//! have, provided that the decisional Diffie-Hellman problem is hard and both follow the protocol (honest but
//! curious). The data holder could add guessed keys to its table, which no protocol of this kind can prevent.
//!
//! Both exponents serve one exchange only, and the types prevent a second use. If a querier used one exponent
//! for several data holders, equal keys would give equal elements, and data holders that compare elements
//! would find their common keys.
//!
//! [`labelled`] is another protocol, with two messages, in which the querier learns the result and the data
//! holder does not.

pub mod labelled;

mod group;
mod message;
mod oprf;
mod records;

use std::collections::HashMap;

use curve25519_dalek::ristretto::RistrettoPoint;
use rand::CryptoRng;
use rand::seq::SliceRandom;
use sha2::{Digest, Sha512};

use self::group::Secret;
use self::message::elements;

pub use self::group::Progress;
pub use self::message::{ELEMENT, PsiError};

/// Hashes a key to a group element with an unknown logarithm.
fn hash(key: &[u8]) -> RistrettoPoint {
    let mut hasher = Sha512::new();
    hasher.update(b"fet psi ristretto255 v1");
    hasher.update(key);
    RistrettoPoint::from_uniform_bytes(&hasher.finalize().into())
}

/// The querier. It reveals none of its keys and learns only the data holder's number of rows.
pub struct Querier {
    secret: Secret,
}

impl Querier {
    /// Returns a querier with a new secret, and the first message: its blinded keys in order.
    pub fn ask<T: AsRef<[u8]> + Sync>(keys: &[T], rng: &mut impl CryptoRng) -> (Self, Vec<u8>) {
        let secret = Secret::draw(rng);
        let message = secret.blind_keys(keys, hash, &|_| ());
        (Self { secret }, message)
    }

    /// Returns the third message: the data holder's elements, blinded once more, in the order received. The
    /// secret is consumed.
    pub fn answer(self, blinded: &[u8]) -> Result<Vec<u8>, PsiError> {
        self.secret.blind_elements(blinded, &|_| ())
    }
}

/// The data holder, which learns the intersection.
pub struct DataHolder {
    secret: Secret,
    /// Rows with the key at each place of the message, lowest first; empty for padding.
    places: Vec<Vec<u32>>,
}

impl DataHolder {
    /// Returns a data holder with a new secret, and the second message. It has as many elements as there are
    /// keys, in random order: one for each distinct key, and random elements for the rest.
    pub fn offer<T: AsRef<[u8]> + Sync>(keys: &[T], rng: &mut impl CryptoRng) -> (Self, Vec<u8>) {
        let secret = Secret::draw(rng);
        let mut rows: HashMap<&[u8], Vec<u32>> = HashMap::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            rows.entry(key.as_ref()).or_default().push(row as u32);
        }
        let distinct = rows.into_iter().map(|(key, rows)| (key.to_vec(), rows));
        let mut offered: Vec<(Vec<u8>, Vec<u32>)> = distinct.collect();
        // 256 random bits equal no actual key.
        offered.resize_with(keys.len(), || {
            let mut random = vec![0u8; ELEMENT];
            rng.fill_bytes(&mut random);
            (random, Vec::new())
        });
        offered.shuffle(rng);
        let (shuffled, places): (Vec<Vec<u8>>, Vec<Vec<u32>>) = offered.into_iter().unzip();
        let message = secret.blind_keys(&shuffled, hash, &|_| ());
        (Self { secret, places }, message)
    }

    /// Returns the data holder's rows with an equal key for each key of the querier, lowest first, from the
    /// first and third messages. The secret is consumed.
    pub fn intersect(self, queries: &[u8], answer: &[u8]) -> Result<Vec<Vec<u32>>, PsiError> {
        let own = elements(answer)?;
        if own.len() != self.places.len() {
            return Err(PsiError::Count { expected: self.places.len(), found: own.len() });
        }
        let queries = self.secret.blind_elements(queries, &|_| ())?;
        let known: HashMap<&[u8; ELEMENT], Vec<u32>> = own.iter().zip(self.places).collect();
        Ok(elements(&queries)?
            .iter()
            .map(|element| known.get(element).cloned().unwrap_or_default())
            .collect())
    }
}

/// Both parties hide their secret and their order.
impl std::fmt::Debug for Querier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Querier")
    }
}

impl std::fmt::Debug for DataHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DataHolder({} rows)", self.places.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn run(queries: &[&str], records: &[&str], seed: u64) -> (Vec<Vec<u32>>, [Vec<u8>; 3]) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (querier, first) = Querier::ask(queries, &mut rng);
        let (data_holder, offer) = DataHolder::offer(records, &mut rng);
        let third = querier.answer(&offer).expect("a message of the data holder's");
        let found = data_holder.intersect(&first, &third).expect("messages of the querier's");
        (found, [first, offer, third])
    }

    #[test]
    fn the_data_holder_learns_the_intersection_with_duplicates() {
        let (found, _) = run(&["a", "b", "c", "a", ""], &["c", "d", "a", "c"], 1);
        assert_eq!(found, [vec![2], vec![], vec![0, 3], vec![2], vec![]]);
        assert_eq!(run(&[], &["a"], 2).0, Vec::<Vec<u32>>::new());
        assert_eq!(run(&["a"], &[], 2).0, [Vec::<u32>::new()]);
    }

    /// Whatever the multiplicities, the offer has as many elements as rows, and all of them differ.
    #[test]
    fn an_offer_reveals_only_the_number_of_rows() {
        for records in [["a"; 4], ["a", "a", "b", "b"], ["a", "b", "c", "d"]] {
            let (_, [_, offer, third]) = run(&["a"], &records, 6);
            for message in [offer, third] {
                let elements = elements(&message).expect("whole elements");
                let distinct: std::collections::HashSet<_> = elements.iter().collect();
                assert_eq!((elements.len(), distinct.len()), (4, 4), "{records:?}");
            }
        }
    }

    /// With new secrets no element of a message repeats, so that no message is a function of the keys alone.
    #[test]
    fn messages_are_fresh() {
        let keys = ["a", "b", "c"];
        let (_, first) = run(&keys, &keys, 3);
        let (_, second) = run(&keys, &keys, 4);
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(a.len(), 3 * ELEMENT);
            assert!(a.chunks(ELEMENT).all(|element| !b.chunks(ELEMENT).any(|other| other == element)));
        }
        // The querier receives another element for a common key than it sent.
        assert!(
            first[0].chunks(ELEMENT).all(|element| !first[1].chunks(ELEMENT).any(|other| other == element))
        );
    }

    #[test]
    fn refuses_invalid_messages() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let mut answer = |message: &[u8]| Querier::ask(&["a"], &mut rng).0.answer(message);
        assert_eq!(answer(&[1; 33]), Err(PsiError::Length(33)));
        assert_eq!(answer(&[0xff; 32]), Err(PsiError::Element(0)));
        assert_eq!(answer(&[0; 32]), Err(PsiError::Element(0)), "every exponent maps the identity to itself");
        let (data_holder, _) = DataHolder::offer(&["a", "b"], &mut rng);
        let (_, first) = Querier::ask(&["a"], &mut rng);
        assert_eq!(data_holder.intersect(&first, &first), Err(PsiError::Count { expected: 2, found: 1 }));
    }
}
