//! Predictions: new records of the primary, linked to this party's records and represented by its best model.

use fet_core::linker::Links;
use fet_core::message::{Forward, LinkKeys, Reply};

use super::join::MOST_ROWS;
use super::{Of, SecondaryError, Session};

impl Session {
    /// Links the keys of new records.
    pub(super) fn predict(&mut self, message: LinkKeys) -> Result<Reply, SecondaryError> {
        self.check_serving()?;
        if self.links.is_none() && !self.guard.is_serving() {
            return Err(SecondaryError::NotLinked);
        }
        let rows = message.keys.rows();
        if !(1..=MOST_ROWS).contains(&rows) {
            let rule = format!("must have 1 to {MOST_ROWS} rows");
            return Err(SecondaryError::Message { field: "keys", rule, value: rows.to_string() });
        }
        self.serving = None;
        self.begin(message.keys, Of::New)
    }

    /// The representation of new records, by the best model: the current one comes back afterwards.
    pub(super) fn represent_new(&mut self, message: &Forward) -> Result<Reply, SecondaryError> {
        self.check_serving()?;
        self.guard.check_new(message)?;
        if self.best.segments().is_empty() {
            return self.represent_rows(message);
        }
        let current = self.encoder.learner().parameters().clone();
        self.encoder.learner_mut().load(&self.best)?;
        let reply = self.represent_rows(message);
        self.encoder.learner_mut().load(&current)?;
        reply
    }

    /// Refuses predictions that the policy forbids or that nothing protects as it protects the run.
    fn check_serving(&self) -> Result<(), SecondaryError> {
        self.guard.check_predictions()?;
        if !self.privacy.is_identity() {
            return Err(SecondaryError::UncountedPrediction);
        }
        if self.sum.is_some() {
            return Err(SecondaryError::SummedPrediction);
        }
        Ok(())
    }

    /// The links that a message's rows refer to.
    pub(super) fn links_of(&self, of: Of) -> Result<&Links, SecondaryError> {
        let links = match of {
            Of::Run => &self.links,
            Of::New => &self.serving,
        };
        links.as_ref().ok_or(SecondaryError::NotLinked)
    }
}
