//! A party's links, made once from the keys that the primary sends.

use fet_core::data::{Keys, Matrix, Sealed};
use fet_core::linker::{LinkError, LinkTask, Links};
use fet_core::message::{LinkKeys, Linked, Reply};
use fet_core::privacy::Selection;
use fet_core::rng::{Purpose, stream};
use fet_tables::prepare::FittedRange;
use rand::Rng;

use super::{Challenged, Of, SecondaryError, Session};

/// Returns the seed of the linker of secondary `number` (from 1); both sides of the linker know it.
pub fn linking_seed(seed: u64, number: usize) -> u64 {
    stream(seed, number, Purpose::Linking, 0).next_u64()
}

/// Returns the similarity of a row's best link, if the linker returns similarities.
fn best(links: &Links, row: usize) -> Option<f64> {
    links.similarities(row)?.first().map(|best| f64::from(*best))
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
        // From here on, the party searches its records. Even a failed search may disclose something about
        // them, so that no second search is allowed.
        self.linked = true;
        self.received.keys(&message.keys);
        self.begin(message.keys, Of::Run)
    }

    /// Links keys, or poses the linker's challenge first.
    pub(super) fn begin(&mut self, queries: Keys, of: Of) -> Result<Reply, SecondaryError> {
        let mut data_holder = self.linker.data_holder(self.linking_seed());
        let challenge =
            data_holder.challenge(&queries, &self.records.raw_keys).map_err(|error| self.private(error))?;
        if let Some(challenge) = challenge {
            self.unlinked = Some(Challenged { queries, data_holder, of });
            return Ok(Reply::Challenge(challenge));
        }
        self.search(Challenged { queries, data_holder, of }, None)
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
        let Challenged { queries, data_holder, of } = &mut challenged;
        let new_rows = *of == Of::New;
        let estimate = self.records.scaled.preparing.linking.filter(|_| new_rows);
        let links = data_holder.link(&LinkTask {
            answer,
            estimate,
            new_rows,
            ..LinkTask::new(queries, &self.records.raw_keys)
        });
        let links = links.map_err(|error| self.private(error))?;
        data_holder.warnings().into_iter().for_each(|warning| (self.tell)(warning));
        self.keep(&links, *of)
    }

    /// Reports a problem with the party's own keys to its operator only; the refusal goes to the primary.
    fn private(&self, error: LinkError) -> SecondaryError {
        if let LinkError::Own { .. } = error {
            (self.tell)(error.to_string());
            return SecondaryError::UnusableKeys;
        }
        error.into()
    }

    /// Tells the operator how many of the primary's records lack a link, which no other output shows.
    fn tell_unlinked(&self, links: &Links) {
        let Some(floor) = self.linker.about().floor else { return };
        let unlinked = |row: &usize| best(links, *row).is_some_and(|best| best <= f64::from(floor));
        let none = (0..links.rows()).filter(unlinked).count();
        if none > 0 {
            (self.tell)(format!(
                "{}: {none} of the primary's {} records have no link with it; the model sees unrelated \
                 records of this party instead. `fet data show` and `fet link` show how keys are \
                 written",
                self.records.scaled.name,
                links.rows()
            ));
        }
    }

    /// Tells the operator how many of these rows have keys far from any record: their best link is worse than
    /// that of every training row by more than a standard deviation.
    fn tell_far(&self, links: &Links, rows: impl Iterator<Item = usize>, which: &str) {
        let Some(range) = &self.records.scaled.preparing.similarities else { return };
        let (mut of, mut far, mut first) = (0, 0, 0);
        for row in rows {
            of += 1;
            let Some(best) = best(links, row) else { return };
            let [worst, _] = range.ends();
            if best < worst && !range.has(best) {
                first = if far == 0 { row } else { first };
                far += 1;
            }
        }
        if far > 0 {
            (self.tell)(format!(
                "{}: {far} of the primary's {of} {which} (the first is row {first}) are far from any record of this party: their best \
                 links are worse than those of all training rows. The model has learned nothing of such links",
                self.records.scaled.name
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
            let split = self.validator.schedule().split().clone();
            let trained: Option<Vec<f64>> = split.train.iter().map(|&row| best(&links, row)).collect();
            self.records.scaled.preparing.similarities = trained.map(FittedRange::fit);
            let held_out = split.validation.into_iter().chain(split.test);
            self.tell_far(&links, held_out, "validation and test rows");
        } else {
            self.tell_far(&links, 0..links.rows(), "new rows");
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
