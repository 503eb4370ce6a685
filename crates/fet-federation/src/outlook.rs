//! Outlook of a run: what a party would release in it, computed from the common settings alone.
//!
//! The owner of a table reads it before anything leaves. It follows the same steps as the party when it joins.

use fet_core::data::PartyTable;
use fet_core::experiment::CommonSettings;
use fet_core::linker::About;
use fet_core::message::Parts;
use fet_core::privacy::{Loss, PrivacyMechanism, Releases, Tally};
use fet_core::release::ReleaseLoss;
use fet_privacy::accountant::Total;

use crate::lifetime::{Lifetime, add};
use crate::privacy::{ProtectionError, RunShape, planned, protection, secure_sum_form};
use crate::release::NamedRelease;
use crate::schedule;
use crate::secondary::run_name;

/// Number of symbols for which a party computes the loss of a release before it knows the primary's labels.
const LEAST_SYMBOLS: usize = 2;

/// A party's place among the secondaries.
#[derive(Debug, Clone, Copy)]
pub struct PartyPlace {
    /// Number of the party, from 1.
    pub number: usize,
    /// Number of all secondaries.
    pub parties: usize,
}

/// Form of a party's answers in the training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerForm {
    /// Number of positions for each primary row.
    pub positions: usize,
    /// Width of a position; `None` if it is the number of the party's columns.
    pub width: Option<usize>,
    /// Width of a position outside the training, if it differs.
    pub evaluation_width: Option<usize>,
    /// Number of epochs.
    pub epochs: usize,
    /// True if the party learns from gradients.
    pub learns: bool,
    /// True if the primary receives the similarities of the linked records.
    pub similarities: bool,
    /// True if the primary receives only the sum over the parties.
    pub summed: bool,
    /// Number of epochs between two averages of parameters, if the method averages them.
    pub averaged_every: Option<usize>,
}

/// Returns the properties of the linker, and the form of the party's answers; `None` if the party takes no part in the training.
pub fn answers(
    settings: &CommonSettings,
    place: PartyPlace,
) -> Result<(About, Option<AnswerForm>), ProtectionError> {
    let plan = settings.method.build(&())?.plan();
    let aggregator = settings.aggregator.build(&())?;
    let about = settings.linker.build(&())?.about();
    if !plan.secondaries {
        return Ok((about, None));
    }
    let form = AnswerForm {
        positions: plan.positions(plan.neighbours.represented(place.number, about.neighbours)),
        width: (!plan.own_width).then_some(plan.width),
        evaluation_width: plan.evaluation_width.filter(|_| !plan.own_width),
        epochs: plan.at_once.map_or(settings.train.epochs, |at_once| at_once.epochs),
        learns: !settings.privacy.build(&())?.freezes_secondaries(),
        similarities: plan.similarities || aggregator.uses_similarities(),
        summed: secure_sum_form(aggregator.as_ref()).is_some(),
        averaged_every: plan.averaged.map(|averaged| averaged.every),
    };
    Ok((about, Some(form)))
}

/// Planned releases of a run with this number of primary rows.
pub struct PlannedRun {
    privacy: Box<dyn PrivacyMechanism>,
    releases: Releases,
    /// Number of training rows.
    pub training_rows: usize,
    name: String,
}

/// Size of the primary's side of a run.
#[derive(Debug, Clone, Copy)]
pub struct PrimarySize<'a> {
    /// Number of primary rows.
    pub rows: usize,
    /// Their split.
    pub parts: &'a Parts,
}

impl PlannedRun {
    /// Plans a run without a `[release]`.
    ///
    /// # Errors
    /// The rows cannot be split, or the mechanism cannot protect the run.
    pub fn new(
        settings: &CommonSettings,
        size: PrimarySize<'_>,
        place: PartyPlace,
    ) -> Result<Self, ProtectionError> {
        let plan = settings.method.build(&())?.plan();
        let aggregator = settings.aggregator.build(&())?;
        let linker = settings.linker.build(&())?;
        let split = schedule::split(size.parts, size.rows, settings.seed)?;
        let run = RunShape {
            plan: &plan,
            linker: linker.as_ref(),
            aggregator: aggregator.as_ref(),
            split: &split,
            parties: place.parties,
        };
        let (privacy, releases) = protection(settings, &run)?;
        let name = run_name(settings, privacy.as_ref());
        Ok(Self { privacy, releases, training_rows: split.train.len(), name })
    }

    /// Number of answers of the party: batches of rows.
    pub fn rounds(&self) -> u64 {
        let all = planned(&self.releases, self.privacy.freezes_secondaries());
        all.iter().map(Tally::releases).sum()
    }

    /// Planned ε of the run at `delta`; `None` if it is unbounded.
    pub fn epsilon(&self, delta: f64) -> Option<f64> {
        let all = planned(&self.releases, self.privacy.freezes_secondaries());
        Some(self.privacy.epsilon_at(&self.releases, &all, delta)).filter(|epsilon| epsilon.is_finite())
    }

    /// ε of one batch of predictions at `delta`, by itself; `None` without a privacy mechanism or if it is unbounded.
    pub fn epsilon_of_prediction(&self, delta: f64) -> Option<f64> {
        let mut one = Tally::default();
        one.add(self.releases.active, 1);
        let epsilon = self.privacy.epsilon_at(&self.releases, &[one], delta);
        Some(epsilon).filter(|epsilon| epsilon.is_finite() && !self.privacy.is_identity())
    }

    /// ε of the run's releases in the account at `delta`; `None` if it is unbounded or the account lacks the run.
    pub fn spent(&self, account: &Lifetime, delta: f64) -> Option<f64> {
        let mut total = Total::default();
        account.run(&self.name)?.add_to(&mut total);
        Some(total.epsilon(delta)).filter(|epsilon| epsilon.is_finite())
    }

    /// Loss of the lifetime account together with the run, which may be in the account already.
    pub fn with_account(&self, account: &Lifetime) -> Total {
        let all = planned(&self.releases, self.privacy.freezes_secondaries());
        let mut total = account.total_without(&self.name);
        let lost = account.run(&self.name).into_iter().flat_map(|run| &run.lost);
        lost.chain([&self.privacy.loss(&self.releases, &all)]).for_each(|loss| add(&mut total, loss));
        total
    }
}

/// Returns the loss of a run's one-time release of this table; `None` without `[release]`. A release of more than two classes
/// may cost more.
///
/// # Errors
/// The settings do not fit, or the table lacks a declared column.
pub fn release_loss(
    settings: &CommonSettings,
    table: &PartyTable,
) -> Result<Option<ReleaseLoss>, ProtectionError> {
    let Some(named) = NamedRelease::build(settings.release.as_ref())? else { return Ok(None) };
    Ok(Some(named.component.loss(table, LEAST_SYMBOLS)?))
}

/// Returns the ε of one loss at `delta`, or infinity if it is unbounded.
pub fn epsilon_of(loss: &Loss, delta: f64) -> f64 {
    let mut total = Total::default();
    add(&mut total, loss);
    total.epsilon(delta)
}

/// Returns the total of an account with one more loss.
pub fn total_with(account: &Lifetime, loss: &Loss) -> Total {
    let mut total = account.total();
    add(&mut total, loss);
    total
}
