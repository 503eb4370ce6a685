//! A party's links, made once from the keys that the primary sends.

use fet_core::data::{Keys, Matrix, Sealed};
use fet_core::linker::{LinkError, LinkTask, Links};
use fet_core::message::{LinkKeys, Linked, Reply};
use fet_core::privacy::Selection;
use fet_core::rng::{Purpose, stream};
use rand::Rng;

use super::{Challenged, Of, SecondaryError, Session};

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
        if self.linked {
            return Err(SecondaryError::LinkedAlready);
        }
        if self.privacy.selection() != Selection::ALL {
            if !self.linker.about().in_the_clear || matches!(message.keys, Keys::Sealed(_)) {
                return Err(SecondaryError::SealedSelection);
            }
            self.queries = Some(message.keys.clone());
        }
        // From here on it searches its records. Also a search that fails may tell something of them: there is no second.
        self.linked = true;
        self.received.keys(&message.keys);
        self.begin(message.keys, Of::Run)
    }

    /// Links keys, or poses the linker's challenge first.
    pub(super) fn begin(&mut self, queries: Keys, of: Of) -> Result<Reply, SecondaryError> {
        let mut owner = self.linker.owner(self.linking_seed());
        let challenge = owner.challenge(&self.records.raw_keys).map_err(|error| self.private(error))?;
        if let Some(challenge) = challenge {
            self.unlinked = Some(Challenged { queries, owner, of });
            return Ok(Reply::Challenge(challenge));
        }
        self.search(Challenged { queries, owner, of }, None)
    }

    pub(super) fn link_answered(&mut self, answer: &Sealed) -> Result<Reply, SecondaryError> {
        let challenged = self.unlinked.take().ok_or(SecondaryError::NoChallenge)?;
        if challenged.of == Of::Run {
            self.received.answer(answer);
        }
        self.search(challenged, Some(answer))
    }

    fn search(
        &mut self,
        mut challenged: Challenged,
        answer: Option<&Sealed>,
    ) -> Result<Reply, SecondaryError> {
        let Challenged { queries, owner, of } = &mut challenged;
        let new_rows = *of == Of::New;
        let estimate = self.records.scaled.preparing.linking.filter(|_| new_rows);
        let links = owner.link(&LinkTask {
            answer,
            estimate,
            new_rows,
            ..LinkTask::new(queries, &self.records.raw_keys)
        });
        let links = links.map_err(|error| self.private(error))?;
        owner.warnings().into_iter().for_each(|warning| (self.tell)(warning));
        self.keep(&links, *of)
    }

    /// What is wrong with the party's own keys is for its operator; a refusal goes to the primary.
    fn private(&self, error: LinkError) -> SecondaryError {
        if let LinkError::Own { .. } = error {
            (self.tell)(error.to_string());
            return SecondaryError::UnusableKeys;
        }
        error.into()
    }

    /// Tells the operator how many of the primary's records have no link, which nothing else shows.
    fn tell_unlinked(&self, links: &Links) {
        let Some(floor) = self.linker.about().floor else { return };
        let best = |row| links.similarities(row).and_then(<[f32]>::first);
        let none = (0..links.rows()).filter(|&row| best(row).is_some_and(|best| *best <= floor)).count();
        if none > 0 {
            (self.tell)(format!(
                "{}: {none} of the primary's {} records have no link with it; what the model sees there are other records of it \
                 (`fet data show` and `fet link` tell how keys are written)",
                self.records.scaled.name,
                links.rows()
            ));
        }
    }

    fn keep(&mut self, links: &Links, of: Of) -> Result<Reply, SecondaryError> {
        let links = links.first(self.neighbours);
        let mut similarities = None;
        if self.reveals_similarities {
            let row = |row| links.similarities(row).ok_or(SecondaryError::NoSimilarities);
            let all = (0..links.rows()).map(row).collect::<Result<Vec<_>, _>>()?;
            similarities = Some(Matrix::new(links.neighbours(), all.concat()));
        }
        let mut available = links.available();
        if of == Of::Run {
            self.records.scaled.preparing.linking = links.estimate();
            self.tell_unlinked(&links);
        }
        match of {
            Of::Run => {
                self.links = Some(links);
                self.evaluated.forget_links();
            }
            Of::New => self.serving = Some(links),
        }
        if self.privacy.selection() != Selection::ALL {
            // The blank record fills empty places.
            available = self.neighbours;
        }
        Ok(Reply::Linked(Linked { available, similarities }))
    }
}
