//! A session's part in the party's lifetime account.
//!
//! The party opens the account when it joins, and reserves the planned run before the first release leaves.
//! It reserves more before the run exceeds the reservation, and replaces the reservation by the actual
//! releases when the session ends.

use std::path::{Path, PathBuf};

use fet_core::experiment::CommonSettings;
use fet_core::message::{Age, LifetimeState};
use fet_core::policy::Policy;
use fet_core::privacy::{Loss, PrivacyMechanism, Releases, Tally};
use fet_eval::records::RESULTS_VERSION;
use fet_privacy::accountant::Total;

use super::config::{LifetimePlace, PartyConfig, WarnOperator};
use super::error::SecondaryError;
use super::ledger;
use crate::lifetime::{About, KnownAges, Lifetime, OTHERS, OpenLifetime, OutdatedAccount, RunLoss, add};
use crate::privacy::{planned, within};
use crate::state_file::StateError;

/// The reason why a rehearsal is unbounded.
pub(super) const REHEARSAL: &str =
    "it was a rehearsal: its noise follows from the experiment's seed and hides nothing";

/// A session's part in the lifetime account.
pub(super) struct Spending {
    account: OpenLifetime,
    /// The party's own folder.
    folder: PathBuf,
    /// The run in the account.
    run: RunLoss,
    limit: f64,
    rehearsal: bool,
    standing: LifetimeState,
    /// Ages of the other parties' accounts that this party knew when the session began.
    others: KnownAges,
    /// Releases in the session's last reservation.
    reserved: Option<Vec<Tally>>,
    settled: bool,
}

/// A run that a party joins, for its lifetime account.
pub(super) struct Joining<'a> {
    /// Place of the account.
    pub(super) place: &'a LifetimePlace,
    /// The run's name.
    pub(super) name: String,
    pub(super) about: About,
    /// Releases that the run plans.
    pub(super) planned: Vec<Tally>,
    /// True if the noise is derived from the experiment's seed.
    pub(super) rehearsal: bool,
    pub(super) policy: &'a Policy,
    /// Receives warnings for the operator.
    pub(super) tell: &'a WarnOperator,
}

impl<'a> Joining<'a> {
    /// Makes the description of a run with these settings, or of a session of predictions, which plans no release and has
    /// another name.
    pub(super) fn new(
        own: &'a PartyConfig,
        place: &'a LifetimePlace,
        privacy: &dyn PrivacyMechanism,
        releases: &Releases,
    ) -> Result<Self, SecondaryError> {
        let predicts = own.model.is_some() && !privacy.is_identity();
        let (name, planned) = match predicts {
            true => (session_name()?, Vec::new()),
            false => (run_name(&own.settings, privacy), planned(releases, privacy.freezes_secondaries())),
        };
        let about = About {
            mechanism: own.settings.privacy.kind().to_string(),
            neighbouring: None,
            learning: None,
            colluding: privacy.colluding(),
            seed: own.settings.seed,
            results: RESULTS_VERSION,
            table: place.table.clone(),
        };
        let rehearsal = own.seed.is_simulated();
        Ok(Self { place, name, about, planned, rehearsal, policy: &own.policy, tell: &own.tell })
    }
}

/// Draws the name of a session of predictions in the lifetime account.
fn session_name() -> Result<String, SecondaryError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| SecondaryError::NoRandomness(error.to_string()))?;
    Ok(format!("predictions-{}", fet_io::hex(&random)))
}

/// Returns the name of a run with these settings in the lifetime account.
pub(crate) fn run_name(settings: &CommonSettings, privacy: &dyn PrivacyMechanism) -> String {
    ledger::short_name(&fet_io::sha256(settings.of_state(privacy).to_toml().as_bytes()))
}

impl Spending {
    /// Opens the account and begins a session of the run in it; refuses a run whose planned loss would exceed
    /// the limit.
    pub(super) fn join(
        joining: Joining<'_>,
        privacy: &dyn PrivacyMechanism,
        releases: &Releases,
    ) -> Result<Self, SecondaryError> {
        let Joining { place, name, mut about, planned, rehearsal, policy, tell } = joining;
        let shared = place.account.open(&place.folder)?;
        let mut account = shared.lock();
        let (limit, delta) = (policy.lifetime_epsilon, policy.most_delta);
        check_known(&account, limit, tell)?;
        let run = account.run(&name).cloned();
        let of_others = account.total_without(&name);
        let plan = loss(privacy, releases, &planned, rehearsal);
        let mut with_plan = of_others;
        run.iter().flat_map(|run| &run.lost).chain([&plan]).for_each(|loss| add(&mut with_plan, loss));
        // The larger of the loss so far and the loss with the planned run counts.
        let spent = account.total().epsilon(delta);
        let epsilon = with_plan.epsilon(delta).max(spent);
        if limit > 0.0 && !within(epsilon, limit) {
            let mut alone = Total::default();
            add(&mut alone, &plan);
            let rule = format!(
                "must be at least the ε of all runs together with this one ({}): earlier runs spent {}, and this run alone needs \
                 {}, all at δ = {delta:e}",
                shown(epsilon),
                shown(spent),
                shown(alone.epsilon(delta))
            );
            return Err(refused(limit, rule));
        }
        if let Some(guarantee) = privacy.spent(releases, &[]).guarantee {
            (about.neighbouring, about.learning) = (Some(guarantee.neighbouring), Some(guarantee.learning));
        }
        let others = KnownAges::read(&place.folder.join(OTHERS))
            .map_err(|problem| unreadable(&place.folder, problem))?;
        let age = account.join(&name, about)?;
        let earlier = account.runs().iter().filter(|run| run.name != name && !run.is_none()).count() as u64;
        let epsilon = Some(epsilon).filter(|epsilon| epsilon.is_finite());
        let standing = LifetimeState { age, earlier, epsilon, delta };
        let run = account.run(&name).cloned().expect("it was joined");
        drop(account);
        let (account, folder) = (shared, place.folder.clone());
        Ok(Self { account, folder, run, limit, rehearsal, standing, others, reserved: None, settled: false })
    }

    /// Returns the age of the account that the party signs for the other parties, after all have joined.
    pub(super) fn age_to_sign(&self) -> Age {
        self.account.lock().sign()
    }

    /// Remembers the ages of the accounts of other parties, by identity. Returns the position of the first party whose account
    /// was older before this session began, with its ages.
    pub(super) fn see(&self, ages: &[(String, Age)]) -> Result<Option<(usize, OutdatedAccount)>, StateError> {
        // No other session of the party may write the file at the same time.
        let mut account = self.account.lock();
        let path = self.folder.join(OTHERS);
        let mut known = KnownAges::read(&path).map_err(|problem| unreadable(&self.folder, problem))?;
        let mut refused = None;
        for (position, (identity, age)) in ages.iter().enumerate() {
            // Another session may have refused the account since this one began.
            let before = match account.refuses(identity) {
                true => known.of(identity),
                false => self.others.of(identity),
            };
            let seen = known.see_since(before, identity, *age);
            account.note_refusal(identity, seen.is_err());
            refused = refused.or(seen.err().map(|old| (position, old)));
        }
        known.keep().map_err(|error| unreadable(&self.folder, error.to_string()))?;
        Ok(refused)
    }

    /// Returns the state of the account that the party reports when it joins.
    pub(super) fn standing(&self) -> LifetimeState {
        self.standing
    }

    /// Returns the state of the account in words, for the operator.
    pub(super) fn words(&self) -> String {
        let LifetimeState { earlier, epsilon, delta, .. } = self.standing;
        let limit = match self.limit {
            0.0 => "no limit".to_string(),
            limit => format!("limit {limit}"),
        };
        format!(
            "lifetime account: {earlier} earlier runs, with this run as planned ε = {} at δ = {delta:e}; {limit}",
            shown(epsilon.unwrap_or(f64::INFINITY))
        )
    }

    /// Compares the account with the run's ledger, once it is open.
    pub(super) fn settle(&mut self, records: u64) {
        if !self.settled {
            self.run = self.run.clone().with_ledger(records);
            self.settled = true;
        }
    }

    /// Returns true if these releases are the session's last reservation.
    pub(super) fn has_reserved(&self, releases: &[Tally]) -> bool {
        self.reserved.as_deref() == Some(releases)
    }

    /// Reserves the run's total releases; refuses if they would exceed the limit.
    pub(super) fn reserve(
        &mut self,
        privacy: &dyn PrivacyMechanism,
        releases: &Releases,
        made: &[Tally],
    ) -> Result<(), SecondaryError> {
        let run = self.run.clone().with_loss(loss(privacy, releases, made, self.rehearsal));
        let mut account = self.account.lock();
        let mut total = account.total_without(&run.name);
        run.add_to(&mut total);
        let epsilon = if self.limit > 0.0 { total.epsilon(self.standing.delta) } else { 0.0 };
        if self.limit > 0.0 && !within(epsilon, self.limit) {
            let rule = format!(
                "must be at most `policy.lifetime_epsilon` ({}) with this release, at δ = {:e}",
                self.limit, self.standing.delta
            );
            return Err(SecondaryError::Spent {
                what: "ε of all runs of the party",
                rule,
                value: shown(epsilon),
            });
        }
        // One line is enough for a run without a bound.
        if !(run.unbounded().is_some() && run.loss == self.run.loss) {
            account.write(&run, false)?;
        }
        drop(account);
        (self.run, self.reserved) = (run, Some(made.to_vec()));
        Ok(())
    }

    /// Replaces the session's reservation by the run's actual releases.
    pub(super) fn close(
        &mut self,
        privacy: &dyn PrivacyMechanism,
        releases: &Releases,
        made: &[Tally],
        records: u64,
    ) -> Result<(), SecondaryError> {
        if self.reserved.is_none() || self.run.unbounded().is_some() {
            return Ok(());
        }
        let loss = loss(privacy, releases, made, self.rehearsal);
        let run = self.run.clone().with_loss(loss).at(records);
        Ok(self.account.lock().write(&run, true)?)
    }
}

/// Returns the error that the file of the other parties' ages cannot be used.
fn unreadable(folder: &Path, problem: String) -> StateError {
    StateError::Io { path: folder.join(OTHERS).display().to_string(), problem }
}

/// Refuses an account that lacks the releases of former versions if the party limits ε.
pub(super) fn check_known(account: &Lifetime, limit: f64, tell: &WarnOperator) -> Result<(), SecondaryError> {
    let unknown = account.unknown_ledgers();
    if unknown.is_empty() {
        return Ok(());
    }
    tell(format!(
        "{}: the lifetime account does not know the releases of {} ledgers of former versions \
         (ledger-{}). Add them with `fet ledger add`: `noise_multiplier` and `releases` are in \
         the reports of their runs",
        account.folder().display(),
        unknown.len(),
        unknown.join(", ledger-")
    ));
    let rule = "needs the releases of former versions in the account; the party's log names their ledgers";
    if limit > 0.0 { Err(refused(limit, rule.to_string())) } else { Ok(()) }
}

/// Returns the refusal of a run by `policy.lifetime_epsilon`.
pub(super) fn refused(limit: f64, rule: String) -> SecondaryError {
    SecondaryError::Policy { field: "lifetime_epsilon", rule, value: limit.to_string() }
}

/// Returns the loss of releases, in numbers that a file can hold.
fn loss(privacy: &dyn PrivacyMechanism, releases: &Releases, made: &[Tally], rehearsal: bool) -> Loss {
    let made_any = made.iter().any(|tally| tally.releases() > 0);
    if rehearsal && made_any {
        return Loss::Unbounded { reason: REHEARSAL.into() };
    }
    let loss = privacy.loss(releases, made);
    bounded(loss)
}

/// Returns the loss in numbers that a file can hold.
pub(super) fn bounded(loss: Loss) -> Loss {
    match loss.is_finite() {
        true => loss,
        false => Loss::Unbounded { reason: "its noise gives no finite bound".into() },
    }
}

pub(super) fn shown(epsilon: f64) -> String {
    if epsilon.is_finite() { format!("{epsilon:.4}") } else { "unbounded".to_string() }
}

#[cfg(test)]
mod tests;
