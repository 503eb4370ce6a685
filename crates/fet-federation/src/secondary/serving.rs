//! Predictions: new records of the primary are linked to this party's records and represented by its best
//! model.

use fet_core::linker::Links;
use fet_core::message::{Forward, LinkKeys, Reply};
use fet_core::policy::Policy;

use super::join::MOST_ROWS;
use super::{Of, SecondaryError, Session};

/// A policy's rules on predictions.
#[derive(Debug, Clone, Copy)]
pub(super) struct PredictionRules {
    allowed: bool,
    least_rows: usize,
    /// Maximum number of records over all runs; 0 for no limit.
    most: u64,
}

impl PredictionRules {
    pub(super) fn new(policy: &Policy) -> Self {
        Self { allowed: policy.predictions, least_rows: policy.least_rows, most: policy.most_predictions }
    }

    fn check_allowed(self) -> Result<(), SecondaryError> {
        if self.allowed {
            return Ok(());
        }
        let rule = "must be true for predictions".to_string();
        Err(SecondaryError::Policy { field: "predictions", rule, value: "false".into() })
    }

    /// Returns the number of records including these, after `before` others; an error if the policy does not
    /// allow it.
    fn count(self, before: u64, rows: usize) -> Result<u64, SecondaryError> {
        if rows < self.least_rows {
            let rule = format!("must be at most the number of new records ({rows})");
            return Err(SecondaryError::Policy {
                field: "least_rows",
                rule,
                value: self.least_rows.to_string(),
            });
        }
        let all = before.saturating_add(rows as u64);
        if self.most > 0 && all > self.most {
            let rule =
                format!("must be at least the total number of records, {rows} after {before} earlier ones");
            return Err(SecondaryError::Policy {
                field: "most_predictions",
                rule,
                value: self.most.to_string(),
            });
        }
        Ok(all)
    }
}

impl Session {
    /// Links the keys of new records.
    pub(super) fn predict(&mut self, message: LinkKeys) -> Result<Reply, SecondaryError> {
        self.check_serving()?;
        if self.links.is_none() && !self.validator.is_serving() {
            return Err(SecondaryError::NotLinked);
        }
        if self.linker.about().by_position && self.has_run_records {
            return Err(SecondaryError::NoNewRecords { linker: self.settings.linker.kind().to_string() });
        }
        let rows = message.keys.rows();
        if !(1..=MOST_ROWS).contains(&rows) {
            let rule = format!("must have 1 to {MOST_ROWS} rows");
            return Err(SecondaryError::Message { field: "keys", rule, value: rows.to_string() });
        }
        let rules = self.validator.predictions();
        let all = rules.count(self.store.predictions()?, rows)?;
        if rules.most > 0 {
            self.store.keep_predictions(all)?;
        }
        self.serving = None;
        self.begin(message.keys, Of::New)
    }

    /// Returns the representation of new records by the best model, and restores the current model
    /// afterwards.
    pub(super) fn represent_new(&mut self, message: &Forward) -> Result<Reply, SecondaryError> {
        self.check_serving()?;
        self.validator.check_new(message)?;
        if self.best.segments().is_empty() {
            return self.represent_rows(message);
        }
        let current = self.encoder.learner().parameters().clone();
        self.encoder.learner_mut().load(&self.best)?;
        let reply = self.represent_rows(message);
        self.encoder.learner_mut().load(&current)?;
        reply
    }

    /// Refuses predictions that the policy forbids, or that would leave without the run's protection.
    fn check_serving(&self) -> Result<(), SecondaryError> {
        self.validator.predictions().check_allowed()?;
        if !self.privacy.is_identity() {
            return Err(SecondaryError::UncountedPrediction);
        }
        if self.sum.is_some() {
            return Err(SecondaryError::SummedPrediction);
        }
        Ok(())
    }

    /// Returns the links that a message's rows refer to.
    pub(super) fn links_of(&self, of: Of) -> Result<&Links, SecondaryError> {
        let links = match of {
            Of::Run => &self.links,
            Of::New => &self.serving,
        };
        links.as_ref().ok_or(SecondaryError::NotLinked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_rows_of_predictions_against_the_policy() {
        let check = |policy: Policy, before: u64, rows: usize, expected: Result<u64, &str>| {
            let rules = PredictionRules::new(&policy);
            let found = rules.check_allowed().and_then(|()| rules.count(before, rows));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
        };
        let policy = Policy { predictions: true, least_rows: 10, most_predictions: 100, ..Policy::default() };
        check(Policy::default(), 0, 1, Err("policy.predictions"));
        check(policy.clone(), 0, 10, Ok(10));
        check(policy.clone(), 90, 10, Ok(100));
        check(policy.clone(), 0, 9, Err("policy.least_rows"));
        check(policy.clone(), 91, 10, Err("policy.most_predictions"));
        check(Policy { most_predictions: 0, ..policy.clone() }, u64::MAX, 10, Ok(u64::MAX));
        check(policy, u64::MAX, 10, Err("policy.most_predictions"));
    }

    #[test]
    fn the_count_outlives_the_session_and_a_damaged_one_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = super::super::Store::folder(folder.path().join("party"));
        assert_eq!(store.predictions().expect("none yet"), 0);
        store.keep_predictions(42).expect("written");
        assert_eq!(store.predictions().expect("a number"), 42);
        fet_io::write(&folder.path().join("party/predictions"), b"many").expect("written");
        let error = store.predictions().expect_err("no number").to_string();
        assert!(error.contains("must hold one number"), "{error}");
    }
}
