//! A party's links, made once from the keys that the primary sends.

use fet_core::data::{Keys, Matrix, Sealed};
use fet_core::linker::{LinkTask, Links, Owner};
use fet_core::message::{LinkKeys, Linked, Reply};
use fet_core::privacy::Selection;
use fet_core::rng::{Purpose, stream};
use rand::Rng;

use super::{SecondaryError, Session};

/// The seed of the linker of secondary `number` (from 1); both sides of the linker know it.
pub fn linking_seed(seed: u64, number: usize) -> u64 {
    stream(seed, number, Purpose::Linking, 0).next_u64()
}

impl Session {
    pub(super) fn linking_seed(&self) -> u64 {
        linking_seed(self.settings.seed, self.number)
    }

    pub(super) fn link(&mut self, message: LinkKeys) -> Result<Reply, SecondaryError> {
        if message.keys.rows() != self.rows {
            let rule = format!("must be one for each of the primary's {} records", self.rows);
            let value = message.keys.rows().to_string();
            return Err(SecondaryError::Message { field: "keys", rule, value });
        }
        if self.links.is_some() || self.unlinked.is_some() {
            return Err(SecondaryError::LinkedAlready);
        }
        if self.privacy.selection() != Selection::ALL {
            if !self.linker.about().in_the_clear || matches!(message.keys, Keys::Sealed(_)) {
                return Err(SecondaryError::SealedSelection);
            }
            self.queries = Some(message.keys.clone());
        }
        let mut owner = self.linker.owner(self.linking_seed());
        if let Some(challenge) = owner.challenge(&self.records.raw_keys)? {
            self.unlinked = Some((message.keys, owner));
            return Ok(Reply::Challenge(challenge));
        }
        self.search(owner, &message.keys, None)
    }

    pub(super) fn link_answered(&mut self, answer: &Sealed) -> Result<Reply, SecondaryError> {
        let (queries, owner) = self.unlinked.take().ok_or(SecondaryError::NoChallenge)?;
        self.search(owner, &queries, Some(answer))
    }

    fn search(
        &mut self,
        mut owner: Box<dyn Owner>,
        queries: &Keys,
        answer: Option<&Sealed>,
    ) -> Result<Reply, SecondaryError> {
        let links = owner.link(&LinkTask { answer, ..LinkTask::new(queries, &self.records.raw_keys) })?;
        owner.warnings().into_iter().for_each(|warning| (self.tell)(warning));
        self.keep(&links)
    }

    fn keep(&mut self, links: &Links) -> Result<Reply, SecondaryError> {
        let links = links.first(self.neighbours);
        let mut similarities = None;
        if self.reveals_similarities {
            let row = |row| links.similarities(row).ok_or(SecondaryError::NoSimilarities);
            let all = (0..links.rows()).map(row).collect::<Result<Vec<_>, _>>()?;
            similarities = Some(Matrix::new(links.neighbours(), all.concat()));
        }
        let mut available = links.available();
        self.links = Some(links);
        if self.privacy.selection() != Selection::ALL {
            // The blank record fills empty places.
            available = self.neighbours;
        }
        Ok(Reply::Linked(Linked { available, similarities }))
    }
}
