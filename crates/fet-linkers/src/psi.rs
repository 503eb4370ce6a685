//! `psi`: links records with equal keys by private set intersection: no key leaves its party.
//!
//! The primary asks and the secondary owns ([`fet_linkage::psi`]): three messages, each with one byte for the kind of
//! keys and 32 bytes per key. Equality, and the rule for records without an equal key, are those of `exact`; a key
//! without content is replaced by random bytes. Each side draws new secret exponents from the operating system, never
//! from the seed: the links do not depend on them.

use fet_linkage::psi::{self, ELEMENT, PsiError};
use rand::{CryptoRng, Rng};
use serde::{Deserialize, Serialize};

use crate::exact::{contents, filled};
use crate::{check_neighbours, links, wire};
use fet_core::data::{KeyKind, Keys, Sealed};
use fet_core::linker::{About, Asker, LinkError, LinkTask, Linker, Links, Owner, Reveals, check_shapes};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `psi`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PsiSettings {
    /// K, the number of neighbours per primary record.
    pub neighbours: usize,
    /// Whether a party with fewer than K records repeats them (the repeats are masked out).
    pub pad: bool,
}

impl Default for PsiSettings {
    fn default() -> Self {
        Self { neighbours: 1, pad: false }
    }
}

impl Recipe<dyn Linker> for PsiSettings {
    fn check(&self) -> Result<(), Violation> {
        check_neighbours(self.neighbours)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Psi(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<PsiSettings>("psi", "records with an equal key, by private set intersection")
}

struct Psi(PsiSettings);

impl Linker for Psi {
    fn about(&self) -> About {
        let reveals = Reveals {
            secondary: "which primary rows have a key equal to one of its own, which primary rows have equal keys, and how \
                        many rows there are",
            primary: "how many records the secondary has",
            eavesdropper: "how many records each has",
        };
        let about = About::new(self.0.neighbours, KeyKind::Either, reveals);
        About { floor: Some(0.0), in_the_clear: false, challenges: true, ..about }
    }

    fn asker(&self, _seed: u64) -> Box<dyn Asker> {
        Box::new(Primary(psi::Asker::new(&mut rng())))
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        Box::new(Secondary { settings: self.0.clone(), seed, waiting: None })
    }
}

struct Primary(psi::Asker);

impl Asker for Primary {
    fn conceal(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        let message = write(kind(queries)?, self.0.ask(&blindable(queries)));
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), message)))
    }

    fn answer(&mut self, challenge: &Sealed) -> Result<Sealed, LinkError> {
        let (kind, elements) = read(challenge)?;
        let message = write(kind, self.0.answer(elements).map_err(unreadable)?);
        Ok(Sealed::new(challenge.rows(), challenge.columns(), message))
    }
}

struct Secondary {
    settings: PsiSettings,
    seed: u64,
    /// The exponent and the order of the pending challenge, and its number of records.
    waiting: Option<(psi::Owner, usize)>,
}

impl Owner for Secondary {
    fn challenge(&mut self, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        let kind = kind(records)?;
        let (owner, message) = psi::Owner::offer(&blindable(records), &mut rng());
        self.waiting = Some((owner, records.rows()));
        Ok(Some(Sealed::new(records.rows(), records.columns(), write(kind, message))))
    }

    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let PsiSettings { neighbours, pad } = self.settings;
        let (asked, records) = (wire::sealed(task.queries)?, task.records);
        check_shapes(asked.columns(), records.columns(), records.rows(), neighbours, pad)?;
        let (kind, queries) = read(asked)?;
        if kind != self::kind(records)? {
            let queries = if kind == TEXT { KeyKind::Text } else { KeyKind::Numbers };
            return Err(LinkError::Mixed { queries: queries.name(), records: records.kind_name() });
        }
        let answer =
            task.answer.ok_or_else(|| LinkError::Message("the answer to the challenge is missing".into()))?;
        let (_, answer) = read(answer)?;
        // An exponent serves one link.
        let (owner, challenged) =
            self.waiting.take().ok_or_else(|| LinkError::Message("it answers no challenge".into()))?;
        if challenged != records.rows() {
            return Err(LinkError::Message(format!(
                "it answers a challenge for {challenged} records; there are {}",
                records.rows()
            )));
        }
        let equal = owner.intersect(queries, answer).map_err(unreadable)?;
        let equal = equal.iter().map(Vec::as_slice);
        let found = filled(equal, neighbours.min(records.rows()), records.rows(), self.seed);
        (task.progress)(asked.rows());
        Ok(links(neighbours, found))
    }
}

/// The first byte of a message about texts, and of one about numbers: texts and numbers are never equal.
const TEXT: u8 = b't';
const NUMBERS: u8 = b'n';

fn kind(keys: &Keys) -> Result<u8, LinkError> {
    match keys {
        Keys::Text(_) => Ok(TEXT),
        Keys::Numbers(_) => Ok(NUMBERS),
        Keys::Sealed(_) => Err(LinkError::kind(KeyKind::Either, keys)),
    }
}

fn write(kind: u8, elements: Vec<u8>) -> Vec<u8> {
    [&[kind], elements.as_slice()].concat()
}

/// Kind and elements of a message; their number must match the stated number of keys.
fn read(message: &Sealed) -> Result<(u8, &[u8]), LinkError> {
    match message.bytes() {
        [kind @ (TEXT | NUMBERS), elements @ ..] => {
            wire::expect(elements.len(), message.rows(), ELEMENT)?;
            Ok((*kind, elements))
        }
        _ => Err(LinkError::Message("it does not begin with the kind of its keys".into())),
    }
}

fn unreadable(error: PsiError) -> LinkError {
    LinkError::Message(error.to_string())
}

/// The generator of secrets: the thread-local one, seeded and reseeded by the operating system.
fn rng() -> impl CryptoRng {
    rand::rng()
}

/// The bytes to blind for each key; a key without content gets random bytes, which equal nothing.
fn blindable(keys: &Keys) -> Vec<Vec<u8>> {
    let mut rng = rng();
    let mut fresh = || {
        let mut bytes = vec![0u8; ELEMENT];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    contents(keys).into_iter().map(|key| key.unwrap_or_else(&mut fresh)).collect()
}
