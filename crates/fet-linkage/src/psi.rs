//! Private equality: which keys two parties have in common, by Diffie-Hellman on the ristretto group.
//!
//! The parties are two state machines that exchange three messages (Meadows 1986; Huberman, Franklin, Hogg 1999):
//!
//! ```text
//! asker                                           owner
//!   H(x)^a for each of its keys, in order   --->
//!                                           <---    H(y)^b for each of its distinct keys, padded, shuffled
//!   (H(y)^b)^a, in the order received       --->
//!                                                   (H(x)^a)^b = (H(y)^b)^a: the intersection
//! ```
//!
//! The *owner* learns which of the asker's keys equals which of its own, and how many keys the asker has; equal keys
//! within the asker's table show as equal. The *asker* learns how many rows the owner has, and nothing else: a key that
//! several rows share is offered once, and random elements fill the message up to the number of rows, so that neither how
//! often a key occurs nor how many distinct keys there are can be seen. Neither learns anything of a key that the other
//! does not have, given that the decisional Diffie-Hellman problem is hard and both follow the protocol (honest but
//! curious). The owner could put keys into its table that it only guesses: that no protocol of this kind can prevent.
//!
//! Both exponents serve one exchange: the types allow no second one. With one exponent for several owners, the elements
//! that they hold of equal keys would be equal, and owners that compare them would learn it.
//!
//! [`labelled`] is another protocol, of two messages, in which the asker learns and the owner does not.

pub mod labelled;

mod group;
mod oprf;
mod records;

use std::collections::HashMap;

use curve25519_dalek::ristretto::RistrettoPoint;
use rand::CryptoRng;
use rand::seq::SliceRandom;
use sha2::{Digest, Sha512};

use self::group::{Secret, elements};

/// Bytes of a group element.
pub const ELEMENT: usize = 32;

/// What is told of how many more elements are done. It may be called from several threads.
pub type Progress<'a> = &'a (dyn Fn(usize) + Sync);

/// Why a message of the other party was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PsiError {
    /// It is no sequence of whole elements.
    #[error("a message must be whole elements of {ELEMENT} bytes; it has {0} bytes")]
    Length(usize),
    /// An element is not one of the group, or is the identity, which would tell keys apart from nothing.
    #[error("element {0} of a message is not a valid element of the group")]
    Element(usize),
    /// It answers another number of elements than were sent.
    #[error("an answer must have {expected} elements; it has {found}")]
    Count {
        /// What was sent.
        expected: usize,
        /// What came back.
        found: usize,
    },
    /// An element stands twice where each key is sent once: equal elements would mark the key that they are of.
    #[error("element {0} of a message stands in it twice; each may stand once")]
    Repeated(usize),
    /// Records are not of the length that is stated.
    #[error("records must have {expected} bytes in all; they have {found}")]
    Records {
        /// What is stated.
        expected: u128,
        /// What came.
        found: usize,
    },
    /// A record of a common key is not what its owner sealed.
    #[error("a record that belongs to row {0} (from 0) cannot be opened: it is not what its owner sealed")]
    Sealed(usize),
}

/// A key as a group element whose logarithm nobody knows.
fn hash(key: &[u8]) -> RistrettoPoint {
    let mut hasher = Sha512::new();
    hasher.update(b"fet psi ristretto255 v1");
    hasher.update(key);
    RistrettoPoint::from_uniform_bytes(&hasher.finalize().into())
}

/// The party that shows nothing and learns only a number.
pub struct Asker {
    secret: Secret,
}

impl Asker {
    /// A party with a fresh secret, and the first message: its keys, blinded, in order.
    pub fn ask<T: AsRef<[u8]> + Sync>(keys: &[T], rng: &mut impl CryptoRng) -> (Self, Vec<u8>) {
        let secret = Secret::draw(rng);
        let message = secret.blind_keys(keys, hash, &|_| ());
        (Self { secret }, message)
    }

    /// The third message: the owner's elements, blinded once more, in the order received. The secret is used up.
    pub fn answer(self, blinded: &[u8]) -> Result<Vec<u8>, PsiError> {
        self.secret.blind_elements(blinded, &|_| ())
    }
}

/// The party that learns the intersection.
pub struct Owner {
    secret: Secret,
    /// Which rows have the key at each place of the message, lowest first; none if it is padding.
    places: Vec<Vec<u32>>,
}

impl Owner {
    /// A party with a fresh secret, and the second message: as many elements as there are keys, of which each distinct
    /// key is one and the others are random, in an order of their own.
    pub fn offer<T: AsRef<[u8]> + Sync>(keys: &[T], rng: &mut impl CryptoRng) -> (Self, Vec<u8>) {
        let secret = Secret::draw(rng);
        let mut rows: HashMap<&[u8], Vec<u32>> = HashMap::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            rows.entry(key.as_ref()).or_default().push(row as u32);
        }
        let distinct = rows.into_iter().map(|(key, rows)| (key.to_vec(), rows));
        let mut offered: Vec<(Vec<u8>, Vec<u32>)> = distinct.collect();
        // 256 random bits equal no key that anybody has.
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

    /// For each key of the asker the owner's rows with an equal key, lowest first, from the first and third messages.
    /// The secret is used up.
    pub fn intersect(self, asked: &[u8], answer: &[u8]) -> Result<Vec<Vec<u32>>, PsiError> {
        let own = elements(answer)?;
        if own.len() != self.places.len() {
            return Err(PsiError::Count { expected: self.places.len(), found: own.len() });
        }
        let asked = self.secret.blind_elements(asked, &|_| ())?;
        let known: HashMap<&[u8; ELEMENT], Vec<u32>> = own.iter().zip(self.places).collect();
        Ok(elements(&asked)?.iter().map(|element| known.get(element).cloned().unwrap_or_default()).collect())
    }
}

/// Neither shows its secret or its order.
impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asker")
    }
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Owner({} rows)", self.places.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn run(asked: &[&str], owned: &[&str], seed: u64) -> (Vec<Vec<u32>>, [Vec<u8>; 3]) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (asker, first) = Asker::ask(asked, &mut rng);
        let (owner, offer) = Owner::offer(owned, &mut rng);
        let third = asker.answer(&offer).expect("a message of the owner's");
        let found = owner.intersect(&first, &third).expect("messages of the asker's");
        (found, [first, offer, third])
    }

    #[test]
    fn the_owner_learns_the_intersection_with_duplicates() {
        let (found, _) = run(&["a", "b", "c", "a", ""], &["c", "d", "a", "c"], 1);
        assert_eq!(found, [vec![2], vec![], vec![0, 3], vec![2], vec![]]);
        assert_eq!(run(&[], &["a"], 2).0, Vec::<Vec<u32>>::new());
        assert_eq!(run(&["a"], &[], 2).0, [Vec::<u32>::new()]);
    }

    /// Whatever the multiplicities: as many elements as rows, each once.
    #[test]
    fn an_offer_shows_the_number_of_rows_alone() {
        for owned in [["a"; 4], ["a", "a", "b", "b"], ["a", "b", "c", "d"]] {
            let (_, [_, offer, third]) = run(&["a"], &owned, 6);
            for message in [offer, third] {
                let elements = elements(&message).expect("whole elements");
                let distinct: std::collections::HashSet<_> = elements.iter().collect();
                assert_eq!((elements.len(), distinct.len()), (4, 4), "{owned:?}");
            }
        }
    }

    /// Nothing in a message repeats under fresh secrets: no message is a function of the keys alone.
    #[test]
    fn messages_are_fresh() {
        let keys = ["a", "b", "c"];
        let (_, first) = run(&keys, &keys, 3);
        let (_, second) = run(&keys, &keys, 4);
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(a.len(), 3 * ELEMENT);
            assert!(a.chunks(ELEMENT).all(|element| !b.chunks(ELEMENT).any(|other| other == element)));
        }
        // What the asker sees of a key they share is not what it sent for it.
        assert!(
            first[0].chunks(ELEMENT).all(|element| !first[1].chunks(ELEMENT).any(|other| other == element))
        );
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let mut answer = |message: &[u8]| Asker::ask(&["a"], &mut rng).0.answer(message);
        assert_eq!(answer(&[1; 33]), Err(PsiError::Length(33)));
        assert_eq!(answer(&[0xff; 32]), Err(PsiError::Element(0)));
        assert_eq!(answer(&[0; 32]), Err(PsiError::Element(0)), "the identity would be mapped to itself");
        let (owner, _) = Owner::offer(&["a", "b"], &mut rng);
        let (_, first) = Asker::ask(&["a"], &mut rng);
        assert_eq!(owner.intersect(&first, &first), Err(PsiError::Count { expected: 2, found: 1 }));
    }
}
