//! Request validator of a party: allows the requests of the agreed schedule, in its order, once.
//!
//! A party computes the schedule itself. In each round it answers only for the scheduled rows and the
//! scheduled parties that are still active. Rounds must be in ascending order. A repeated request gets the
//! same reply; a different request for the same round is refused. A secure aggregation may be tried again
//! without the parties that dropped out, until one attempt is unmasked.

use std::collections::BTreeSet;

use fet_core::message::{Forward, Reply, Round, ShareParameters};

use super::error::SecondaryError;
use super::policy::PredictionRules;
use crate::schedule::{EpochBatches, Part, Schedule};

/// A request for a release.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReleaseRequest {
    Forward(Forward),
    Share(ShareParameters),
}

/// Position of a round in the run: its epoch, its phase in the epoch, and its place in the phase.
type Position = (u64, Phase, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Once,
    Train,
    Average,
    Validation,
    Test,
    Saved,
}

/// Rules of the run and of the party's policy for releases.
pub(super) struct ReleaseRules {
    /// True if the party answers only prediction requests.
    pub(super) serving: bool,
    /// True if every row is released once.
    pub(super) frozen: bool,
    /// True if releases are parts of sums.
    pub(super) sums: bool,
    /// True if every batch of new records has another number, because it is part of a sum or has noise.
    pub(super) numbered: bool,
    /// True if a sum must be over all scheduled parties.
    pub(super) whole_sums: bool,
    /// Minimum number of parties in a sum.
    pub(super) least_summed: usize,
    /// Interval, in epochs, at which parameters are averaged; `None` if the method averages none.
    pub(super) averaged_every: Option<usize>,
    /// True if the policy allows requests that are not on the schedule.
    pub(super) probes: bool,
    pub(super) predictions: PredictionRules,
}

/// Releases of a party in this session, and the releases that may follow.
pub(super) struct RequestValidator {
    schedule: Schedule,
    rules: ReleaseRules,
    /// Scheduled parties that a round left out, from 0; no later round may include them.
    dropped_out: BTreeSet<usize>,
    /// Position of the last release.
    at: Option<Position>,
    /// Last attempt at the secure aggregation of the last round, and its parties, until an attempt is
    /// unmasked.
    attempt: Option<(Round, u32, Vec<u32>)>,
    /// Number of the last probe.
    probe: Option<u32>,
    /// Number of the last batch of new records, if batches are numbered.
    predicted: Option<u32>,
    /// Round of the last averaging, until its result is loaded.
    averaging: Option<Round>,
    last: Option<(ReleaseRequest, Reply)>,
    /// Batches of an epoch, drawn once.
    batches: Option<(usize, EpochBatches)>,
}

fn wrong(field: &'static str, rule: impl Into<String>, value: impl ToString) -> SecondaryError {
    SecondaryError::Message { field, rule: rule.into(), value: value.to_string() }
}

impl RequestValidator {
    pub(super) fn new(schedule: Schedule, rules: ReleaseRules) -> Self {
        Self {
            schedule,
            rules,
            dropped_out: BTreeSet::new(),
            at: None,
            attempt: None,
            probe: None,
            predicted: None,
            averaging: None,
            last: None,
            batches: None,
        }
    }

    /// Returns the scheduled parties of a round, including those that have dropped out since.
    pub(super) fn scheduled(&self, round: Round) -> Vec<usize> {
        self.schedule.active(round)
    }

    /// Returns the schedule of rows and parties in each round.
    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn least_summed(&self) -> usize {
        self.rules.least_summed
    }

    /// Returns the reply to the last request if `asked` repeats that request.
    pub(super) fn repeated(&self, asked: &ReleaseRequest) -> Option<Reply> {
        self.last.as_ref().filter(|(last, _)| last == asked).map(|(_, reply)| reply.clone())
    }

    /// Refuses a release that is not next in the schedule.
    pub(super) fn admit(
        &mut self,
        round: Round,
        rows: Option<&[usize]>,
        active: &[u32],
        attempt: Option<u32>,
    ) -> Result<(), SecondaryError> {
        if self.rules.serving {
            return Err(SecondaryError::OnlyPredictions);
        }
        if self.rules.frozen != matches!(round, Round::Once { .. }) && !matches!(round, Round::Probe { .. }) {
            let rule = if self.rules.frozen {
                "must belong to the single release: `privacy.learning` is \"frozen\""
            } else {
                "must belong to training or evaluation: rows are released once only if \
                 `privacy.learning` is \"frozen\""
            };
            return Err(wrong("round", rule, round));
        }
        if let Round::Probe { batch } = round {
            if !self.rules.probes {
                let rule = "must be on the schedule: `policy.probes` does not allow other rows";
                return Err(wrong("round", rule, round));
            }
            let again = self.attempt.as_ref().is_some_and(|(last, ..)| *last == round);
            if !again && self.probe.is_some_and(|last| batch <= last) {
                return Err(wrong("round", "must be a probe that was not answered yet", round));
            }
        } else {
            self.check_order(round)?;
            self.check_rows(round, rows)?;
        }
        self.check_attempt(round, active, attempt)?;
        self.check_parties(round, active)
    }

    fn check_order(&self, round: Round) -> Result<(), SecondaryError> {
        let position = self.position(round).ok_or_else(|| {
            wrong("round", format!("must be one of the run's {} epochs", self.schedule.epochs()), round)
        })?;
        let again = self.attempt.as_ref().is_some_and(|(last, ..)| *last == round);
        if !again && self.at.is_some_and(|at| position <= at) {
            let rule =
                "must follow the last answered round: each round is answered once, in the schedule's order";
            return Err(wrong("round", rule, round));
        }
        Ok(())
    }

    fn position(&self, round: Round) -> Option<Position> {
        let epochs = self.schedule.epochs() as u64;
        let steps = self.schedule.steps().max(1) as u64;
        let position = match round {
            Round::Once { batch } => (0, Phase::Once, u64::from(batch)),
            Round::Train { step } => (step / steps, Phase::Train, step),
            Round::Average { epoch } => (u64::from(epoch), Phase::Average, 0),
            Round::Validation { epoch, batch } => (u64::from(epoch), Phase::Validation, u64::from(batch)),
            Round::Test { epoch, batch } => (u64::from(epoch), Phase::Test, u64::from(batch)),
            Round::Probe { .. } | Round::Predict { .. } => return None,
        };
        (position.0 < epochs).then_some(position)
    }

    fn check_rows(&mut self, round: Round, rows: Option<&[usize]>) -> Result<(), SecondaryError> {
        let Some(rows) = rows else {
            let due = |every: usize, epoch: u32| (epoch as usize + 1).is_multiple_of(every);
            return match (round, self.rules.averaged_every) {
                (Round::Average { epoch }, Some(every)) if due(every, epoch) => Ok(()),
                _ => Err(wrong("round", "must be an averaging that the method's settings require", round)),
            };
        };
        let schedule = &self.schedule;
        let expected = match round {
            Round::Train { step } => {
                let steps = schedule.steps().max(1) as u64;
                let (epoch, place) = ((step / steps) as usize, (step % steps) as usize);
                if self.batches.as_ref().is_none_or(|(of, _)| *of != epoch) {
                    self.batches = Some((epoch, schedule.batches(epoch)));
                }
                self.batches.as_ref().and_then(|(_, batches)| batches.get(place))
            }
            Round::Validation { batch, .. } => schedule.evaluated(Part::Validation, batch as usize),
            Round::Test { batch, .. } => schedule.evaluated(Part::Test, batch as usize),
            Round::Once { batch } => {
                let portion = schedule.portion(batch as usize);
                let same = portion.is_some_and(|portion| portion.eq(rows.iter().copied()));
                return if same { Ok(()) } else { Err(unscheduled(round, rows)) };
            }
            Round::Average { .. } | Round::Probe { .. } | Round::Predict { .. } => None,
        };
        if expected == Some(rows) { Ok(()) } else { Err(unscheduled(round, rows)) }
    }

    /// Checks the number and the parties of an attempt at a sum. The first attempt is 0. Each later attempt
    /// leaves out parties that dropped out, so that no two sums over the same parties have different noise.
    fn check_attempt(
        &self,
        round: Round,
        active: &[u32],
        attempt: Option<u32>,
    ) -> Result<(), SecondaryError> {
        let Some(attempt) = attempt else { return Ok(()) };
        let last = self.attempt.as_ref().filter(|(last, ..)| *last == round);
        let next = last.map_or(0, |(_, number, _)| number + 1);
        if attempt != next {
            return Err(wrong("attempt", format!("must be {next}"), attempt));
        }
        if let Some((.., before)) = last {
            let fewer = active.len() < before.len();
            if !fewer || !active.iter().all(|party| before.binary_search(party).is_ok()) {
                let rule =
                    format!("must be fewer than in the previous attempt, and among its parties ({before:?})");
                return Err(wrong("active", rule, format!("{active:?}")));
            }
        }
        Ok(())
    }

    fn check_parties(&self, round: Round, active: &[u32]) -> Result<(), SecondaryError> {
        let scheduled = self.schedule.active(round);
        for &party in active {
            let party = party as usize;
            if self.dropped_out.contains(&party) {
                let rule = format!("must not name party {party}: an earlier round left it out");
                return Err(wrong("active", rule, format!("{active:?}")));
            }
            if scheduled.binary_search(&party).is_err() {
                let rule = format!("must name only parties scheduled in {round}");
                return Err(wrong("active", rule, format!("{party} among them")));
            }
        }
        if self.rules.sums && active.len() < self.rules.least_summed {
            let field = "least_summed";
            let rule = format!("must be at most the number of parties in a sum ({})", active.len());
            return Err(SecondaryError::Policy { field, rule, value: self.rules.least_summed.to_string() });
        }
        if self.rules.whole_sums && active.len() < scheduled.len() {
            let rule = format!(
                "must be true for a sum over {} of {} parties: without a privacy mechanism, sums that \
                 differ by one party disclose its part",
                active.len(),
                scheduled.len()
            );
            return Err(SecondaryError::Policy { field: "differing_sums", rule, value: "false".into() });
        }
        Ok(())
    }

    /// Records a reply before it leaves.
    pub(super) fn answered(&mut self, asked: ReleaseRequest, reply: &Reply) {
        let (round, active, attempt) = match &asked {
            ReleaseRequest::Forward(message) => (message.round, &message.active, message.attempt),
            ReleaseRequest::Share(message) => (message.round, &message.active, message.attempt),
        };
        let out = self.schedule.active(round).into_iter();
        self.dropped_out.extend(out.filter(|&party| active.binary_search(&(party as u32)).is_err()));
        match round {
            Round::Probe { batch } => self.probe = Some(batch),
            Round::Predict { batch } => self.predicted = Some(batch),
            _ => self.at = self.position(round),
        }
        self.attempt = attempt.map(|number| (round, number, active.clone()));
        if matches!(asked, ReleaseRequest::Share(_)) {
            self.averaging = Some(round);
        }
        let before = self.last.replace((asked, reply.clone()));
        // The next reply reuses the memory of the previous one.
        if let Some((_, Reply::Representation(block))) = before {
            block.into_unshared().into_iter().for_each(fet_kernels::give_back);
        }
    }

    /// Records that an attempt at the sum of a round was unmasked: no other attempt may follow.
    pub(super) fn unmasked(&mut self, round: Round) {
        self.attempt.take_if(|(last, ..)| *last == round);
    }

    /// Records that a party dropped out while a sum was unmasked.
    pub(super) fn drop_out(&mut self, party: usize) {
        self.dropped_out.insert(party);
    }

    /// Allows averaged parameters once, after this party has sent its own.
    pub(super) fn averaged(&mut self, round: Round) -> Result<(), SecondaryError> {
        if self.averaging.take_if(|of| *of == round).is_some() {
            return Ok(());
        }
        Err(wrong(
            "round",
            "must be the round of the parameters that this party sent last, and only once",
            round,
        ))
    }

    pub(super) fn check_load(&self) -> Result<(), SecondaryError> {
        if self.at.is_none() && self.probe.is_none() { Ok(()) } else { Err(SecondaryError::LoadedLate) }
    }

    /// Records that the state after `epoch`, from 1, was restored: the run continues after that epoch. If
    /// every row is released once, the party makes the same release again.
    pub(super) fn loaded(&mut self, epoch: u32) {
        if self.rules.frozen {
            return;
        }
        self.at = Some((u64::from(epoch.max(1)) - 1, Phase::Saved, 0));
    }

    /// Returns true if every batch of new records has another number.
    pub(super) fn numbers_batches(&self) -> bool {
        self.rules.numbered
    }

    /// Returns the policy's rules on predictions.
    pub(super) fn predictions(&self) -> PredictionRules {
        self.rules.predictions
    }

    /// Refuses predictions by secure sums if the policy asks for sums that hide the party's part.
    pub(super) fn check_new_sums(&self) -> Result<(), SecondaryError> {
        if !self.rules.whole_sums {
            return Ok(());
        }
        let rule = "must be true for predictions by secure sums: without a privacy mechanism, a primary that chooses the keys \
                    of new records can compute this party's part from the differences between sums"
            .to_string();
        Err(SecondaryError::Policy { field: "differing_sums", rule, value: "false".into() })
    }

    /// Refuses a prediction that names parties that have dropped out. In a secure sum and with noise, each batch of the session
    /// has a greater number than the one before, so that no two messages have the same mask, and a batch is released once.
    pub(super) fn check_new(&self, message: &Forward) -> Result<(), SecondaryError> {
        let Forward { round, active, attempt, .. } = message;
        if let (Round::Predict { batch }, true) = (*round, self.rules.numbered) {
            let again = self.attempt.as_ref().is_some_and(|(last, ..)| last == round);
            if !again && self.predicted.is_some_and(|last| batch <= last) {
                return Err(wrong("round", "must be a batch that was not answered yet", round));
            }
        }
        self.check_attempt(*round, active, *attempt)?;
        self.check_parties(*round, active)
    }
}

fn unscheduled(round: Round, rows: &[usize]) -> SecondaryError {
    let rule = format!("must be those scheduled for {round}, in the schedule's order");
    wrong("rows", rule, format!("{} others", rows.len()))
}
