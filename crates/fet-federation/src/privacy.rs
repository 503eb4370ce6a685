//! Privacy mechanism of a run, calibrated to the run's releases. Each party computes it for itself.

use fet_core::aggregator::{Aggregator, Role, SecureSum};
use fet_core::data::DataError;
use fet_core::experiment::CommonSettings;
use fet_core::linker::Linker;
use fet_core::method::Plan;
use fet_core::privacy::{PrivacyMechanism, Releases, Tally};
use fet_core::registry::{SettingsError, Slot, Violation};
use fet_privacy::secure_sum::MaskGraph;

use crate::schedule::{ReleaseForm, Split, releases};
use crate::secure_aggregation;

/// Reason why a run cannot have the protection that its settings require.
#[derive(Debug, thiserror::Error)]
pub enum ProtectionError {
    /// The primary's rows cannot be split.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A setting is impossible.
    #[error(transparent)]
    Settings(#[from] Violation),
}

/// Returns the form of the secure aggregation that hides the parties' parts, if the aggregator uses one.
pub(crate) fn secure_sum_form(aggregator: &dyn Aggregator) -> Option<SecureSum> {
    match aggregator.role() {
        Role::Sum(sum) => Some(sum.form()),
        Role::Combine(_) => None,
    }
}

/// The parts of a run that determine its releases.
#[derive(Clone, Copy)]
pub(crate) struct RunShape<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) linker: &'a dyn Linker,
    pub(crate) aggregator: &'a dyn Aggregator,
    pub(crate) split: &'a Split,
    /// Number of secondaries.
    pub(crate) parties: usize,
}

/// Returns the mechanism of the settings, calibrated to the run's releases. Refuses a mechanism that cannot
/// protect these releases.
pub(crate) fn protection(
    settings: &CommonSettings,
    run: &RunShape<'_>,
) -> Result<(Box<dyn PrivacyMechanism>, Releases), ProtectionError> {
    let RunShape { plan, linker, aggregator, split, parties } = *run;
    let mut privacy = settings.privacy.build(&())?;
    let own = |party| plan.positions(plan.neighbours.represented(party, linker.about().neighbours));
    let positions = (1..=parties).map(own).max().unwrap_or(0);
    let sum = secure_sum_form(aggregator).filter(|_| plan.secondaries);
    let form = ReleaseForm { block: positions * plan.width, summed: sum.is_some() };
    let releases = releases(&settings.train, plan, split, parties, form);
    if plan.secondaries {
        if let Some(sum) = sum {
            check_sums(sum, privacy.as_ref(), &releases)?;
        }
        privacy.prepare(&releases).map_err(|violation| violation.within("privacy"))?;
        if let Some(sum) = sum {
            check_budget(sum, privacy.as_ref(), &releases)?;
        }
    }
    Ok((privacy, releases))
}

/// Returns the maximum number of rows of a batch of predictions: that of the run's releases, which the noise covers.
pub(crate) fn most_rows(privacy: &dyn PrivacyMechanism, releases: &Releases) -> usize {
    let Releases { rows, all_rows, .. } = *releases;
    if privacy.freezes_secondaries() { all_rows } else { rows }
}

/// Returns the mechanism of these settings with negligible noise and without sampling of records; the
/// clipping is unchanged. It measures an attacker who knows the noise and looks for the values behind it.
pub fn without_noise(
    privacy: &Slot<dyn PrivacyMechanism>,
) -> Result<Slot<dyn PrivacyMechanism>, SettingsError> {
    if privacy.build(&())?.is_identity() {
        return Ok(privacy.clone());
    }
    let mut settings = privacy.settings();
    for (field, value) in [
        ("kind", "gaussian".into()),
        ("noise", toml::Value::Float(1e-6)),
        ("target_epsilon", 0.0.into()),
        ("sample_rate", 1.0.into()),
        ("amplification", false.into()),
    ] {
        settings.insert(field.to_string(), value);
    }
    Slot::from_table(settings)
}

/// Refuses secure aggregation that would hide no party's part.
fn check_sums(sum: SecureSum, privacy: &dyn PrivacyMechanism, releases: &Releases) -> Result<(), Violation> {
    let fewest = releases.train_active.min(releases.active);
    if fewest < 2 {
        let rule = "must not be \"secure-average\" unless at least two secondaries take part in every step: the sum over \
                    one party is its value";
        let value = format!("\"secure-average\" with {fewest} of {}", releases.active);
        return Err(Violation::new("aggregator.kind", rule, value));
    }
    let tolerated = MaskGraph::new(fewest, sum.degree).tolerates();
    let colluding = privacy.colluding();
    if colluding > tolerated {
        let rule = format!(
            "must be above `privacy.colluding` ({colluding}), and each step needs more than {colluding} \
             other parties; {fewest} parties take part in a step"
        );
        return Err(Violation::new("aggregator.degree", rule, sum.degree));
    }
    Ok(())
}

/// Returns the problem with sums over different parties for the same rows without a mechanism: such sums are
/// equations that can be solved for each part.
pub(crate) fn solvable_sums(privacy: &dyn PrivacyMechanism, releases: &Releases) -> Option<String> {
    let Releases { active, train_active, .. } = *releases;
    (releases.summed && privacy.is_identity() && train_active < active).then(|| {
        format!(
            "`method.party_dropout` leaves {} of {active} parties out of each training step, and `privacy.kind` is \"none\": sums \
             over different parties for the same rows hide no party's part from a primary that withholds gradients",
            active - train_active
        )
    })
}

/// Refuses secure aggregation whose sums could wrap around.
fn check_budget(
    sum: SecureSum,
    privacy: &dyn PrivacyMechanism,
    releases: &Releases,
) -> Result<(), Violation> {
    for active in [releases.train_active, releases.active] {
        if let Err(error) = secure_aggregation::units(sum, privacy.form(active, releases.block), active) {
            return Err(Violation::new(
                "aggregator.bits",
                format!("must have room for every sum ({error})"),
                sum.bits,
            ));
        }
    }
    Ok(())
}

/// Returns true if ε is at most `limit`; false for NaN.
pub(crate) fn within(epsilon: f64, limit: f64) -> bool {
    epsilon <= limit
}

/// Returns the releases of a run without dropped-out parties: in one tally, or in the pass of a frozen party.
pub(crate) fn planned(releases: &Releases, frozen: bool) -> Vec<Tally> {
    let epoch = releases.of_epoch();
    vec![Tally::of_all(std::iter::repeat_n(&epoch, if frozen { 1 } else { releases.epochs }))]
}
