//! Labelled private set intersection in two messages: the querier learns the result and the data holder does
//! not.
//!
//! ```text
//! querier                                         data holder
//!   H(x)^a for each row, in order           --->
//!                                           <---    (H(x)^a)^b for each, and a record for each of the data holder's rows
//!   H(x)^b, hence F(x): the tags of its keys' records, and the payloads sealed in them
//! ```
//!
//! F is an oblivious pseudorandom function (Jarecki and Liu 2010; RFC 9497). The data holder draws its key b
//! for this exchange. A record consists of a tag and a payload sealed by ChaCha20-Poly1305 (RFC 8439). Both
//! are derived by HKDF (RFC 5869) from F(y), where y is the data holder's own key. Freedman, Ishai, Pinkas
//! and Reingold (2005) introduced sealing payloads with such a function.
//!
//! If both parties follow the protocol (honest but curious) and decisional Diffie-Hellman is hard in the
//! group, they learn the following:
//!
//! - The data holder learns the querier's number of rows. The querier sends a key that several rows share
//!   once. Elements of random bytes replace its other rows and rows without a key, so that the message hides
//!   repeated and missing keys.
//! - The querier learns the data holder's number of rows, and the padded length of payloads. The nth row of a
//!   key has the key's nth record, and random bytes replace rows without a key. Only a querier with the key
//!   can see how often it occurs.
//! - [`Answer::sealed`]: the querier learns the payloads of the rows whose key it has, and the rows of its
//!   own table that they belong to.
//! - [`Answer::count`]: the querier learns *how many distinct keys* the tables have in common. The answered
//!   elements are shuffled. Records are tags alone, one for each distinct key of the data holder, and random
//!   tags fill them up to its number of rows (De Cristofaro, Gasti and Tsudik 2012). The tag is derived from
//!   H(y)^b without y. With y, the querier could try each of its keys on each element and undo the shuffle.
//!
//! Limits: a querier may ask about guessed keys. A querier that violates the protocol can find out whether a
//! key is in common although it only gets a count. It can ask for that key among random ones, or mark it by
//! also sending a power of its element. The data holder refuses equal elements in a request. The querier
//! cannot verify that the data holder used one b, or its real table. Messages are not signed.

use std::collections::{HashMap, HashSet};

use rand::CryptoRng;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use sha2::{Digest, Sha512};

use super::group::{Progress, Secret};
use super::message::{ELEMENT, PsiError, elements};
use super::oprf::{finalize, hash_to_group};
use super::records::Derived;
pub use super::records::{TAG, padded, record};

/// Input of the function: a digest of the compared content, so that content of any length has a key.
pub type Key = [u8; 32];

/// Returns the key of these bytes.
pub fn key(content: &[u8]) -> Key {
    digest(b"fet psi labelled v1 key\0", content)
}

/// Returns the identity of a request: a digest of its elements.
pub fn identity(request: &[u8]) -> [u8; 32] {
    digest(b"fet psi labelled v1 request\0", request)
}

fn digest(purpose: &[u8], bytes: &[u8]) -> [u8; 32] {
    let all = Sha512::new().chain_update(purpose).chain_update(bytes).finalize();
    *all.first_chunk().expect("it has 64 bytes")
}

/// Content of an answer.
#[derive(Clone, Copy)]
enum Gives {
    Count,
    Payloads,
}

/// Returns the salt of all derivations in an exchange. It depends on the content of the answer, the rest of
/// the exchange's messages, and both parties' elements.
fn exchange(gives: Gives, request: &[u8; 32], context: &[u8], evaluated: &[u8]) -> [u8; 64] {
    let gives: &[u8] = match gives {
        Gives::Count => b"count\0",
        Gives::Payloads => b"payloads\0",
    };
    let hash = Sha512::new().chain_update(b"fet psi labelled v1 exchange\0").chain_update(gives);
    let hash = hash.chain_update(request).chain_update((context.len() as u64).to_le_bytes());
    hash.chain_update(context).chain_update(evaluated).finalize().into()
}

/// The querier, between its request and the answer.
#[cfg_attr(test, derive(Clone))]
pub struct Querier {
    secret: Secret,
    request: [u8; 32],
    /// Key of each row; `None` if the row lacks a key.
    keys: Vec<Option<Key>>,
}

impl Querier {
    /// Returns a querier with a new secret, and its request: an element for each row.
    pub fn ask(keys: Vec<Option<Key>>, rng: &mut impl CryptoRng, done: Progress<'_>) -> (Self, Vec<u8>) {
        let secret = Secret::draw(rng);
        let mut seen = HashSet::with_capacity(keys.len());
        let mut sent = |key: &Option<Key>| match key {
            Some(key) if seen.insert(*key) => *key,
            // 256 random bits equal no actual key.
            _ => random(rng),
        };
        let sent: Vec<Key> = keys.iter().map(&mut sent).collect();
        let request = secret.blind_keys(&sent, hash_to_group, done);
        (Self { secret, request: identity(&request), keys }, request)
    }

    /// Returns the querier's number of rows.
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// Returns the querier's number of distinct keys.
    pub fn distinct(&self) -> usize {
        self.keys.iter().flatten().collect::<HashSet<_>>().len()
    }

    /// Returns the identity of the querier's request ([`identity`]).
    pub fn request(&self) -> [u8; 32] {
        self.request
    }

    /// Serialises the querier: the secret exponent, the request's identity, and a key for each row, 0 if the
    /// row has none; 32 bytes each. The bytes are more sensitive than the keys, since they open an answer.
    pub fn to_bytes(&self) -> Vec<u8> {
        let keys = self.keys.iter().map(|key| key.unwrap_or_default());
        [self.secret.to_bytes(), self.request].into_iter().chain(keys).flatten().collect()
    }

    /// Parses the bytes of [`Self::to_bytes`]. Returns `None` if they are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([secret, request, keys @ ..], []) = bytes.as_chunks::<32>() else { return None };
        let key = |key: &Key| (*key != Key::default()).then_some(*key);
        Some(Self {
            secret: Secret::from_bytes(*secret)?,
            request: *request,
            keys: keys.iter().map(key).collect(),
        })
    }

    /// Returns the number of the querier's distinct keys that the data holder also has, given an answer with
    /// a count. `context` must equal the data holder's `context`. The secret is consumed.
    pub fn count(self, answer: &Answer, context: &[u8], done: Progress<'_>) -> Result<usize, PsiError> {
        let own = self.unblinded(answer, done)?;
        let salt = exchange(Gives::Count, &self.request, context, &answer.evaluated);
        let tags: HashSet<&[u8]> = answer.records(TAG)?.collect();
        let known = |element: &&[u8; ELEMENT]| tags.contains(Derived::new(&salt, *element).tag(0).as_slice());
        Ok(elements(&own)?.par_iter().filter(known).count())
    }

    /// Opens the payloads of the querier's rows, given an answer with payloads padded to `length` bytes
    /// ([`padded`]). `context` must equal the data holder's `context`. The secret is consumed.
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

    /// Returns the answered elements without the querier's exponent, in the answer's order.
    fn unblinded(&self, answer: &Answer, done: Progress<'_>) -> Result<Vec<u8>, PsiError> {
        let found = elements(&answer.evaluated)?.len();
        if found != self.keys.len() {
            return Err(PsiError::Count { expected: self.keys.len(), found });
        }
        unrepeated(&answer.evaluated)?;
        self.secret.inverse().blind_elements(&answer.evaluated, done)
    }
}

/// Hides the secret and the keys.
impl std::fmt::Debug for Querier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Querier({} rows)", self.keys.len())
    }
}

/// Payloads that a querier opened.
#[derive(Debug)]
pub struct Opened {
    /// First row with the same key, for each row.
    places: Vec<usize>,
    payloads: Vec<Vec<Vec<u8>>>,
}

impl Opened {
    /// Returns the payloads of the data holder's rows with the key of this row, in the data holder's order.
    pub fn row(&self, row: usize) -> &[Vec<u8>] {
        &self.payloads[self.places[row]]
    }

    /// Returns the querier's number of rows.
    pub fn rows(&self) -> usize {
        self.places.len()
    }
}

/// The data holder's rows.
#[derive(Clone, Copy)]
pub struct KeyedPayloads<'a> {
    /// Key of each row; `None` if the row lacks a key.
    pub keys: &'a [Option<Key>],
    /// Payload of each row.
    pub payloads: &'a [Vec<u8>],
}

/// Hides the keys and the payloads.
impl std::fmt::Debug for KeyedPayloads<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyedPayloads({} rows)", self.keys.len())
    }
}

/// The second message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Elements of the request, raised to the data holder's exponent: in order, or shuffled for a count.
    pub evaluated: Vec<u8>,
    /// Shuffled records of equal length, one for each of the data holder's rows.
    pub records: Vec<u8>,
}

impl Answer {
    /// Returns an answer with the number of common distinct keys. `context` is the rest of the exchange's
    /// messages.
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

    /// Returns an answer with the payloads of the data holder's rows, one for each row. Only a querier with
    /// the key of a row can open its payload. `context` is the rest of the exchange's messages.
    ///
    /// # Panics
    /// If the numbers of payloads and keys differ, since the caller makes both.
    pub fn sealed(
        request: &[u8],
        table: &KeyedPayloads<'_>,
        context: &[u8],
        rng: &mut impl CryptoRng,
        done: Progress<'_>,
    ) -> Result<Self, PsiError> {
        let KeyedPayloads { keys, payloads } = *table;
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

    /// Returns the records, of `length` bytes each.
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

/// Returns the elements of a request raised to the data holder's exponent. Each element may occur once.
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

/// Returns the rows of each key, lowest first.
fn rows(keys: &[Option<Key>]) -> HashMap<&Key, Vec<usize>> {
    let mut rows: HashMap<&Key, Vec<usize>> = HashMap::with_capacity(keys.len());
    for (row, key) in keys.iter().enumerate() {
        if let Some(key) = key {
            rows.entry(key).or_default().push(row);
        }
    }
    rows
}

/// Fills up the records with random bytes to `count` records of `length` bytes each, and shuffles them.
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
