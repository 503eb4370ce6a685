//! `psi`: records with an equal key, found by private set intersection: no key leaves its party.
//!
//! The primary asks and the secondary owns ([`fet_linkage::psi`]): three messages through the protocol. Equality is that of
//! `exact`, and so is the rule for records without an equal key; a key without content is replaced by random bytes.
//! Secret exponents are drawn from the operating system, never from the seed: the links do not depend on them.

use std::sync::{Mutex, OnceLock};

use fet_linkage::psi::{Asker, ELEMENT, Owner, PsiError};
use rand::{CryptoRng, Rng};
use serde::{Deserialize, Serialize};

use crate::exact::{contents, filled};
use crate::{check_neighbours, links};
use fet_core::data::{KeyKind, Keys, Sealed};
use fet_core::linker::{LinkError, Linker, Links, Reveals, check_either};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `psi`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PsiSettings {
    /// K, how many neighbours each primary record gets.
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
        Ok(Box::new(Psi { settings: self.clone(), asker: OnceLock::new(), owners: Mutex::new(Vec::new()) }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<PsiSettings>("psi", "records with an equal key, by private set intersection")
}

struct Psi {
    settings: PsiSettings,
    /// The primary's side.
    asker: OnceLock<Asker>,
    /// The secondaries' sides that wait for an answer, by the message that they sent.
    owners: Mutex<Vec<(Vec<u8>, Owner)>>,
}

fn unreadable(error: PsiError) -> LinkError {
    LinkError::Message(error.to_string())
}

/// The generator of secrets: the thread's, seeded and reseeded by the operating system.
fn rng() -> impl CryptoRng {
    rand::rng()
}

/// What is blinded for each key; one without content gets random bytes, which equal nothing.
fn blindable(keys: &Keys) -> Vec<Vec<u8>> {
    let mut rng = rng();
    let mut fresh = || {
        let mut bytes = vec![0u8; ELEMENT];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    contents(keys).into_iter().map(|key| key.unwrap_or_else(&mut fresh)).collect()
}

impl Psi {
    fn asker(&self) -> &Asker {
        self.asker.get_or_init(|| Asker::new(&mut rng()))
    }
}

impl Linker for Psi {
    fn neighbours(&self) -> usize {
        self.settings.neighbours
    }

    fn takes(&self) -> KeyKind {
        KeyKind::Either
    }

    fn floor(&self) -> Option<f32> {
        Some(0.0)
    }

    fn reveals(&self) -> Reveals {
        Reveals {
            secondary: "which primary rows have a key equal to one of its own, which primary rows have equal keys, and how \
                        many rows there are",
            primary: "how many records the secondary has",
            outsider: "how many records each has",
        }
    }

    fn conceal(&self, queries: &Keys, _seed: u64) -> Result<Keys, LinkError> {
        let message = self.asker().ask(&blindable(queries));
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), message)))
    }

    fn asks(&self) -> bool {
        true
    }

    fn challenge(&self, records: &Keys) -> Result<Option<Sealed>, LinkError> {
        let (owner, message) = Owner::offer(&blindable(records), &mut rng());
        let mut owners = self.owners.lock().expect("no thread panics while it holds the lock");
        owners.push((message.clone(), owner));
        Ok(Some(Sealed::new(records.rows(), records.columns(), message)))
    }

    fn answer(&self, challenge: &Sealed) -> Result<Sealed, LinkError> {
        let message = self.asker().answer(challenge.bytes()).map_err(unreadable)?;
        // The answer repeats what it answers, so that the owner finds the challenge it belongs to.
        Ok(Sealed::new(challenge.rows(), challenge.columns(), [challenge.bytes(), &message].concat()))
    }

    fn link_answered(
        &self,
        queries: &Keys,
        records: &Keys,
        answer: &Sealed,
        seed: u64,
    ) -> Result<Links, LinkError> {
        let PsiSettings { neighbours, pad } = self.settings;
        check_either(queries, records, neighbours, pad)?;
        let Keys::Sealed(asked) = queries else {
            return Err(LinkError::Message("keys in the clear where blinded ones are expected".into()));
        };
        let (challenge, answer) = answer.bytes().split_at(answer.bytes().len() / 2);
        let mut owners = self.owners.lock().expect("no thread panics while it holds the lock");
        let place = owners.iter().position(|(message, _)| message == challenge);
        let (_, owner) =
            owners.remove(place.ok_or_else(|| LinkError::Message("an answer to nothing".into()))?);
        drop(owners);
        let equal = owner.intersect(asked.bytes(), answer).map_err(unreadable)?;
        let equal = equal.iter().map(Vec::as_slice);
        Ok(links(neighbours, filled(equal, neighbours.min(records.rows()), records.rows(), seed)))
    }

    fn link(&self, queries: &Keys, records: &Keys, seed: u64) -> Result<Links, LinkError> {
        let PsiSettings { neighbours, pad } = self.settings;
        check_either(queries, records, neighbours, pad)?;
        let asked = self.conceal(queries, seed)?;
        let challenge = self.challenge(records)?.expect("it always asks");
        self.link_answered(&asked, records, &self.answer(&challenge)?, seed)
    }
}
