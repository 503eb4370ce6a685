//! Labelled private set intersection in two messages: the asker learns, the owner does not.
//!
//! ```text
//! asker                                           owner
//!   H(x)^a for each row, in order           --->
//!                                           <---    (H(x)^a)^b for each, and a record for each of its own rows
//!   H(x)^b, hence F(x): the tags of its keys' records, and what is sealed in them
//! ```
//!
//! F is an oblivious pseudorandom function (Jarecki and Liu 2010; RFC 9497), whose key b the owner draws for this exchange. A record is
//! a tag and a payload sealed by ChaCha20-Poly1305 (RFC 8439), both of which follow from F(y) of its own key y by HKDF (RFC 5869); to
//! seal payloads by such a function is of Freedman, Ishai, Pinkas and Reingold (2005).
//!
//! What each learns if both follow the protocol (honest but curious) and decisional Diffie-Hellman is hard in the group:
//!
//! - The owner learns how many rows the asker has. A key that several rows share is sent once; elements of random bytes stand for its
//!   other rows, and for rows without a key, so that neither repeats nor missing keys show.
//! - The asker learns how many rows the owner has, and the length that payloads are padded to. The nth row of a key has the key's nth
//!   record, and random bytes stand for rows without a key: how often a key occurs shows to who has the key, and to nobody else.
//! - [`Answer::sealed`]: the asker learns the payloads of the rows whose key it has, and to which of its rows they belong.
//! - [`Answer::count`]: the asker learns *how many distinct keys* the tables have in common. The answered elements are shuffled and
//!   records are tags alone, one for each distinct key of the owner's, with random ones up to its rows (De Cristofaro, Gasti and
//!   Tsudik 2012). The tag here follows from H(y)^b without y: were y in it, the asker could try each of its keys on each element
//!   and undo the shuffle.
//!
//! What it does not do: an asker may ask about keys that it only guesses, and one that does not follow the protocol can find out of a
//! key whether it is in common although only a count is given: it asks for that key among random ones, or marks it by sending
//! a power of its element too. Equal elements in a request are refused. Nothing shows the asker that the owner used
//! one b, or its table; messages are not signed.

use std::collections::{HashMap, HashSet};

use rand::CryptoRng;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use sha2::{Digest, Sha512};

use super::group::{Secret, elements};
use super::oprf::{finalize, hash_to_group};
use super::records::Derived;
pub use super::records::{TAG, padded, record};
use super::{ELEMENT, Progress, PsiError};

/// A key as the function takes it: a digest of what is compared, so that keys of any length have one.
pub type Key = [u8; 32];

/// The key of these bytes.
pub fn key(content: &[u8]) -> Key {
    digest(b"fet psi labelled v1 key\0", content)
}

/// What tells a request from others: a digest of its elements.
pub fn identity(request: &[u8]) -> [u8; 32] {
    digest(b"fet psi labelled v1 request\0", request)
}

fn digest(purpose: &[u8], bytes: &[u8]) -> [u8; 32] {
    let all = Sha512::new().chain_update(purpose).chain_update(bytes).finalize();
    *all.first_chunk().expect("it has 64 bytes")
}

/// What an answer gives.
#[derive(Clone, Copy)]
enum Gives {
    Count,
    Payloads,
}

/// The salt of all that is derived in an exchange: what it gives, what else its messages say, and both sides' elements.
fn exchange(gives: Gives, request: &[u8; 32], context: &[u8], evaluated: &[u8]) -> [u8; 64] {
    let gives: &[u8] = match gives {
        Gives::Count => b"count\0",
        Gives::Payloads => b"payloads\0",
    };
    let hash = Sha512::new().chain_update(b"fet psi labelled v1 exchange\0").chain_update(gives);
    let hash = hash.chain_update(request).chain_update((context.len() as u64).to_le_bytes());
    hash.chain_update(context).chain_update(evaluated).finalize().into()
}

/// The party that asks and learns, between its request and the answer.
#[cfg_attr(test, derive(Clone))]
pub struct Asker {
    secret: Secret,
    request: [u8; 32],
    /// Of each row; nothing where a row has none.
    keys: Vec<Option<Key>>,
}

impl Asker {
    /// A party with a fresh secret, and its request: an element for each row.
    pub fn ask(keys: Vec<Option<Key>>, rng: &mut impl CryptoRng, done: Progress<'_>) -> (Self, Vec<u8>) {
        let secret = Secret::draw(rng);
        let mut seen = HashSet::with_capacity(keys.len());
        let mut sent = |key: &Option<Key>| match key {
            Some(key) if seen.insert(*key) => *key,
            // 256 random bits are no key that anybody has.
            _ => random(rng),
        };
        let sent: Vec<Key> = keys.iter().map(&mut sent).collect();
        let request = secret.blind_keys(&sent, hash_to_group, done);
        (Self { secret, request: identity(&request), keys }, request)
    }

    /// The number of its rows.
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// The number of its distinct keys.
    pub fn distinct(&self) -> usize {
        self.keys.iter().flatten().collect::<HashSet<_>>().len()
    }

    /// What its request is told from others by ([`identity`]).
    pub fn request(&self) -> [u8; 32] {
        self.request
    }

    /// The party as bytes: the secret exponent, the request's identity, and a key for each row, 0 where it has none; 32 bytes each.
    /// They are as secret as the keys, and more: with them an answer can be opened.
    pub fn to_bytes(&self) -> Vec<u8> {
        let keys = self.keys.iter().map(|key| key.unwrap_or_default());
        [self.secret.to_bytes(), self.request].into_iter().chain(keys).flatten().collect()
    }

    /// The party of these bytes; nothing, if they are not such.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([secret, request, keys @ ..], []) = bytes.as_chunks::<32>() else { return None };
        let key = |key: &Key| (*key != Key::default()).then_some(*key);
        Some(Self {
            secret: Secret::from_bytes(*secret)?,
            request: *request,
            keys: keys.iter().map(key).collect(),
        })
    }

    /// How many of its distinct keys the owner has too, by an answer that gives a count. `context` is what the owner gave as such. The
    /// secret is used up.
    pub fn count(self, answer: &Answer, context: &[u8], done: Progress<'_>) -> Result<usize, PsiError> {
        let own = self.unblinded(answer, done)?;
        let salt = exchange(Gives::Count, &self.request, context, &answer.evaluated);
        let tags: HashSet<&[u8]> = answer.records(TAG)?.collect();
        let known = |element: &&[u8; ELEMENT]| tags.contains(Derived::new(&salt, *element).tag(0).as_slice());
        Ok(elements(&own)?.par_iter().filter(known).count())
    }

    /// What the owner sealed for its rows, by an answer that gives payloads padded to `length` bytes ([`padded`]). `context` is
    /// what the owner gave as such. The secret is used up.
    pub fn open(
        self,
        answer: &Answer,
        length: usize,
        context: &[u8],
        done: Progress<'_>,
    ) -> Result<Opened, PsiError> {
        let own = self.unblinded(answer, done)?;
        let salt = exchange(Gives::Payloads, &self.request, context, &answer.evaluated);
        let records: HashMap<&[u8], &[u8]> =
            answer.records(record(length))?.map(|record| record.split_at(TAG)).collect();
        let mut places = HashMap::with_capacity(self.keys.len());
        for (row, key) in self.keys.iter().enumerate() {
            if let Some(key) = key {
                places.entry(*key).or_insert(row);
            }
        }
        let own = elements(&own)?;
        let open = |row: usize, key: &Key| {
            if places[key] != row {
                return Ok(Vec::new());
            }
            let derived = Derived::new(&salt, &finalize(key, &own[row]));
            let found = (0u32..).map_while(|number| {
                let sealed = records.get(derived.tag(number).as_slice())?;
                Some(derived.open(number, sealed).ok_or(PsiError::Sealed(row)))
            });
            found.collect()
        };
        let rows = self.keys.par_iter().enumerate();
        let payloads = rows.map(|(row, key)| key.map_or(Ok(Vec::new()), |key| open(row, &key)));
        let payloads = payloads.collect::<Result<Vec<_>, _>>()?;
        let places = self.keys.iter().enumerate().map(|(row, key)| key.map_or(row, |key| places[&key]));
        Ok(Opened { places: places.collect(), payloads })
    }

    /// The answered elements without its own exponent, in the answer's order.
    fn unblinded(&self, answer: &Answer, done: Progress<'_>) -> Result<Vec<u8>, PsiError> {
        let found = elements(&answer.evaluated)?.len();
        if found != self.keys.len() {
            return Err(PsiError::Count { expected: self.keys.len(), found });
        }
        unrepeated(&answer.evaluated)?;
        self.secret.inverse().blind_elements(&answer.evaluated, done)
    }
}

/// Shows neither secret nor keys.
impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Asker({} rows)", self.keys.len())
    }
}

/// What an asker opened.
#[derive(Debug)]
pub struct Opened {
    /// The first row with the key of each.
    places: Vec<usize>,
    payloads: Vec<Vec<Vec<u8>>>,
}

impl Opened {
    /// The payloads of the owner's rows that have the key of this row, in the owner's order.
    pub fn row(&self, row: usize) -> &[Vec<u8>] {
        &self.payloads[self.places[row]]
    }

    /// The number of the asker's rows.
    pub fn rows(&self) -> usize {
        self.places.len()
    }
}

/// The second message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The request's elements, raised to the owner's exponent: in order, or shuffled where a count is given.
    pub evaluated: Vec<u8>,
    /// A record for each of the owner's rows, all of one length, shuffled.
    pub records: Vec<u8>,
}

impl Answer {
    /// The answer that gives how many distinct keys are in common. `context` is what else the exchange's messages say.
    pub fn count(
        request: &[u8],
        keys: &[Option<Key>],
        context: &[u8],
        rng: &mut impl CryptoRng,
        done: Progress<'_>,
    ) -> Result<Self, PsiError> {
        let secret = Secret::draw(rng);
        let evaluated = evaluated(&secret, request, done)?;
        let mut shuffled = elements(&evaluated)?.to_vec();
        shuffled.shuffle(rng);
        let evaluated = shuffled.concat();
        let salt = exchange(Gives::Count, &identity(request), context, &evaluated);
        let own: Vec<Key> = rows(keys).into_keys().copied().collect();
        let own = secret.blind_keys(&own, hash_to_group, done);
        let tags = elements(&own)?.par_iter().map(|element| Derived::new(&salt, element).tag(0).to_vec());
        Ok(Self { evaluated, records: shuffled_with_random(tags.collect(), keys.len(), TAG, rng) })
    }

    /// The answer that gives the payloads of the owner's rows to who has their keys, one for each row. `context` is as before.
    ///
    /// # Panics
    /// If there are not as many payloads as keys: the caller made both.
    pub fn sealed(
        request: &[u8],
        keys: &[Option<Key>],
        payloads: &[Vec<u8>],
        context: &[u8],
        rng: &mut impl CryptoRng,
        done: Progress<'_>,
    ) -> Result<Self, PsiError> {
        assert_eq!(keys.len(), payloads.len(), "each row has a payload");
        let secret = Secret::draw(rng);
        let evaluated = evaluated(&secret, request, done)?;
        let salt = exchange(Gives::Payloads, &identity(request), context, &evaluated);
        let length = padded(payloads.iter().map(Vec::len).max().unwrap_or_default());
        let (distinct, rows): (Vec<Key>, Vec<Vec<usize>>) =
            rows(keys).into_iter().map(|(key, rows)| (*key, rows)).unzip();
        let own = secret.blind_keys(&distinct, hash_to_group, done);
        let records = elements(&own)?.par_iter().zip(&distinct).zip(&rows);
        let records = records.flat_map_iter(|((element, key), rows)| {
            let derived = Derived::new(&salt, &finalize(key, element));
            (0u32..).zip(rows).map(move |(number, &row)| {
                let sealed = derived.seal(number, &payloads[row], length);
                [derived.tag(number).as_slice(), &sealed].concat()
            })
        });
        let records = shuffled_with_random(records.collect(), keys.len(), record(length), rng);
        Ok(Self { evaluated, records })
    }

    /// The records, each of so many bytes.
    fn records(&self, length: usize) -> Result<impl Iterator<Item = &[u8]>, PsiError> {
        let records = self.records.chunks_exact(length);
        match records.remainder() {
            [] => Ok(records),
            _ => {
                let expected = (records.len() as u128 + 1) * length as u128;
                Err(PsiError::Records { expected, found: self.records.len() })
            }
        }
    }
}

/// The elements of a request under the owner's exponent. Each may stand there once.
fn evaluated(secret: &Secret, request: &[u8], done: Progress<'_>) -> Result<Vec<u8>, PsiError> {
    unrepeated(request)?;
    secret.blind_elements(request, done)
}

fn unrepeated(message: &[u8]) -> Result<(), PsiError> {
    let mut seen = HashSet::new();
    match elements(message)?.iter().position(|element| !seen.insert(element)) {
        Some(place) => Err(PsiError::Repeated(place)),
        None => Ok(()),
    }
}

/// The rows of each key, lowest first.
fn rows(keys: &[Option<Key>]) -> HashMap<&Key, Vec<usize>> {
    let mut rows: HashMap<&Key, Vec<usize>> = HashMap::with_capacity(keys.len());
    for (row, key) in keys.iter().enumerate() {
        if let Some(key) = key {
            rows.entry(key).or_default().push(row);
        }
    }
    rows
}

/// These records and random bytes, `count` in all of `length` bytes each, in an order that says nothing.
fn shuffled_with_random(
    mut records: Vec<Vec<u8>>,
    count: usize,
    length: usize,
    rng: &mut impl CryptoRng,
) -> Vec<u8> {
    records.resize_with(count, || {
        let mut bytes = vec![0; length];
        rng.fill_bytes(&mut bytes);
        bytes
    });
    records.shuffle(rng);
    records.concat()
}

fn random(rng: &mut impl CryptoRng) -> Key {
    let mut bytes = Key::default();
    rng.fill_bytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests;
