//! A party's own policy: the checks of a run before the party joins, and the rules on predictions.
//!
//! Some terms of a run's guarantee promise less than a reader of its ε expects. A party that limits ε
//! (`policy.most_epsilon`, `policy.lifetime_epsilon`) refuses such terms unless its policy names them. A party
//! without a limit joins, and its operator is warned.

use fet_core::aggregator::SecureSum;
use fet_core::experiment::CommonSettings;
use fet_core::policy::Policy;
use fet_core::privacy::{Learning, Neighbouring, PrivacyMechanism, Releases, Spent};
use fet_core::release::{PlaceNeeds, ReleaseLoss};
use fet_privacy::accountant::Total;
use fet_privacy::secure_sum::MaskGraph;
use serde::Serialize;

use super::error::SecondaryError;
use crate::lifetime::add;
use crate::privacy::{planned, solvable_sums, within};

/// Returns true if the party requires sums that hide its part, and only sums over identical sets of parties
/// hide it.
pub(super) fn needs_whole_sums(
    policy: &Policy,
    privacy: &dyn PrivacyMechanism,
    sum: Option<SecureSum>,
) -> bool {
    sum.is_some() && privacy.is_identity() && policy.asks_for_sums() && !policy.differing_sums
}

/// A run that the primary asks a party to join.
#[derive(Clone, Copy)]
pub(super) struct ProposedRun<'a> {
    pub(super) settings: &'a CommonSettings,
    /// Number of the primary's records.
    pub(super) rows: usize,
    pub(super) privacy: &'a dyn PrivacyMechanism,
    /// Form of the secure aggregation, if representations are aggregated securely.
    pub(super) sum: Option<SecureSum>,
    pub(super) releases: &'a Releases,
}

/// Refuses a run that a party's policy forbids.
pub(super) fn check_policy(policy: &Policy, run: &ProposedRun<'_>) -> Result<(), SecondaryError> {
    let ProposedRun { settings, rows, privacy, sum, releases } = *run;
    let refuse = |field, rule: String, value: String| Err(SecondaryError::Policy { field, rule, value });
    let lists = [
        ("linkers", &policy.linkers, settings.linker.kind()),
        ("mechanisms", &policy.mechanisms, settings.privacy.kind()),
        ("aggregators", &policy.aggregators, settings.aggregator.kind()),
    ];
    for (field, allowed, kind) in lists {
        if !allowed.is_empty() && !allowed.iter().any(|name| name == kind) {
            return refuse(field, format!("must name \"{kind}\""), format!("{allowed:?}"));
        }
    }
    if rows < policy.least_rows {
        let rule = format!("must be at most the number of primary records ({rows})");
        return refuse("least_rows", rule, policy.least_rows.to_string());
    }
    if policy.most_epsilon > 0.0 {
        let delta = policy.most_delta;
        let planned = planned(releases, privacy.freezes_secondaries());
        let epsilon = privacy.epsilon_at(releases, &planned, delta);
        if !within(epsilon, policy.most_epsilon) {
            let rule = format!(
                "must be at least the ε of the run ({epsilon:.4} at δ = {delta:e}, `policy.most_delta`)"
            );
            return refuse("most_epsilon", rule, policy.most_epsilon.to_string());
        }
    }
    let noise = privacy.spent(releases, &[]).guarantee.map_or(0.0, |guarantee| guarantee.noise);
    if noise < policy.least_noise {
        let rule = format!("must be at most the noise of the run ({noise})");
        return refuse("least_noise", rule, policy.least_noise.to_string());
    }
    if sum.is_none() && policy.least_summed > 2 {
        let rule = "must be 2 if `aggregator.kind` shows the primary every part".to_string();
        return refuse("least_summed", rule, policy.least_summed.to_string());
    }
    if needs_whole_sums(policy, privacy, sum)
        && let Some(problem) = solvable_sums(privacy, releases)
    {
        return refuse("differing_sums", format!("must be true for this run: {problem}"), "false".into());
    }
    if let Some(sum) = sum {
        let fewest = releases.train_active.min(releases.active);
        if fewest < policy.least_summed {
            let rule = format!("must be at most the number of parties in a sum ({fewest})");
            return refuse("least_summed", rule, policy.least_summed.to_string());
        }
        let neighbours = MaskGraph::new(fewest, sum.degree).neighbours(0).len();
        if neighbours < policy.least_mask_neighbours.min(fewest - 1) {
            let rule =
                format!("must be at most the number of parties that masks are shared with ({neighbours})");
            return refuse("least_mask_neighbours", rule, policy.least_mask_neighbours.to_string());
        }
    }
    Ok(())
}

/// Refuses a release that the policy does not accept. Returns warnings about a relation that weakens ε if the policy does
/// not limit ε. `planned` is the loss of the release.
pub(super) fn check_release(
    policy: &Policy,
    settings: &CommonSettings,
    rows: usize,
    needs: Option<PlaceNeeds>,
    planned: &ReleaseLoss,
) -> Result<Vec<String>, SecondaryError> {
    let refuse = |field, rule: String, value: String| Err(SecondaryError::Policy { field, rule, value });
    let kind = settings.release.as_ref().map_or_else(String::new, |slot| slot.kind().to_string());
    let other_limits = [
        ("mechanisms", !policy.mechanisms.is_empty()),
        ("aggregators", !policy.aggregators.is_empty()),
        ("learning", !policy.learning.is_empty()),
        ("least_noise", policy.least_noise > 0.0),
        ("least_summed", policy.least_summed > 2),
    ];
    if !policy.releases.is_empty() && !policy.releases.contains(&kind) {
        return refuse("releases", format!("must name \"{kind}\""), format!("{:?}", policy.releases));
    }
    if let (true, Some((other, _))) =
        (policy.releases.is_empty(), other_limits.iter().find(|(_, is_set)| *is_set))
    {
        let rule = format!(
            "must name \"{kind}\", because `policy.{other}` is about answers in a training, and a release is none"
        );
        return refuse("releases", rule, "[]".into());
    }
    let linker = settings.linker.kind();
    if needs.is_some() && !policy.linkers.is_empty() && !policy.linkers.iter().any(|name| name == linker) {
        return refuse("linkers", format!("must name \"{linker}\""), format!("{:?}", policy.linkers));
    }
    if rows < policy.least_rows {
        let rule = format!("must be at most the number of primary records ({rows})");
        return refuse("least_rows", rule, policy.least_rows.to_string());
    }
    if policy.most_epsilon > 0.0 {
        let mut total = Total::default();
        add(&mut total, &planned.loss);
        let (delta, epsilon) = (policy.most_delta, total.epsilon(policy.most_delta));
        if !within(epsilon, policy.most_epsilon) {
            let rule = format!(
                "must be at least the ε of the release ({epsilon:.4} at δ = {delta:e}, `policy.most_delta`)"
            );
            return refuse("most_epsilon", rule, policy.most_epsilon.to_string());
        }
    }
    let term = Term::of_relation("release.neighbouring", planned.relation, policy);
    term.check(policy)?;
    Ok(if limits(policy).is_some() { Vec::new() } else { term.warning().into_iter().collect() })
}

/// A term of the guarantee, and the policy's rule about it.
struct Term {
    /// Setting of the run, followed by its value.
    setting: &'static str,
    value: String,
    /// Name of the policy's list that may contain the value, followed by the list as text.
    field: &'static str,
    list: String,
    is_empty: bool,
    is_named: bool,
    /// Reason why ε promises less with this value, if it does.
    weakness: Option<&'static str>,
}

/// Refuses terms that the policy does not accept. Returns warnings about terms that weaken ε if the policy
/// does not limit ε.
pub(super) fn check_guarantee(
    policy: &Policy,
    kind: &str,
    privacy: &dyn PrivacyMechanism,
    releases: &Releases,
) -> Result<Vec<String>, SecondaryError> {
    let Spent { guarantee, delta, .. } = privacy.spent(releases, &[]);
    let Some(guarantee) = guarantee else {
        let lists = [("neighbouring", word(&policy.neighbouring)), ("learning", word(&policy.learning))];
        return match lists.into_iter().find(|(_, list)| list != "[]") {
            None => Ok(Vec::new()),
            Some((field, value)) => {
                let rule = format!("must be [] for a run without a guarantee (`privacy.kind` is \"{kind}\")");
                Err(SecondaryError::Policy { field, rule, value })
            }
        };
    };
    let (relation, learning) = (guarantee.neighbouring, guarantee.learning);
    let terms = [
        Term::of_relation("privacy.neighbouring", relation, policy),
        Term {
            weakness: (learning == Learning::Assumed)
                .then_some("does not count the models' learning from the records"),
            ..Term::new("privacy.learning", "learning", &learning, &policy.learning)
        },
        Term {
            weakness: privacy
                .is_idealised()
                .then_some("assumes noise in real numbers; the released noise is in 32-bit floats"),
            ..Term::new("privacy.kind", "mechanisms", &kind.to_string(), &policy.mechanisms)
        },
    ];
    terms.iter().try_for_each(|term| term.check(policy))?;
    if limits(policy).is_some() {
        return Ok(Vec::new());
    }
    let mut warnings: Vec<String> = terms.iter().filter_map(Term::warning).collect();
    if delta > policy.most_delta {
        warnings.push(format!(
            "`privacy.delta` is {delta:e}, above `policy.most_delta` ({:e}): the run's ε may fail with that probability. Set \
             `policy.most_epsilon` to limit ε at `policy.most_delta`",
            policy.most_delta
        ));
    }
    Ok(warnings)
}

/// Returns the setting that limits ε, and its value.
fn limits(policy: &Policy) -> Option<(&'static str, f64)> {
    let limits = [("most_epsilon", policy.most_epsilon), ("lifetime_epsilon", policy.lifetime_epsilon)];
    limits.into_iter().find(|(_, most)| *most > 0.0)
}

impl Term {
    fn of_relation(setting: &'static str, relation: Neighbouring, policy: &Policy) -> Self {
        Self {
            weakness: (relation == Neighbouring::AddRemove)
                .then_some("does not cover the replacement of a record, which can cost up to twice as much"),
            ..Self::new(setting, "neighbouring", &relation, &policy.neighbouring)
        }
    }

    fn new<T: PartialEq + Serialize>(
        setting: &'static str,
        field: &'static str,
        value: &T,
        list: &Vec<T>,
    ) -> Self {
        let (is_empty, is_named) = (list.is_empty(), list.contains(value));
        Self { setting, value: word(value), field, list: word(list), is_empty, is_named, weakness: None }
    }

    fn check(&self, policy: &Policy) -> Result<(), SecondaryError> {
        let Self { setting, value, field, .. } = self;
        let limited = self.weakness.zip(limits(policy));
        if self.is_named || (self.is_empty && limited.is_none()) {
            return Ok(());
        }
        let mut rule = format!("must name {value}, or `{setting}` must have another value");
        if let Some((weakness, (limit, most))) = limited {
            rule.push_str(&format!(
                ": with it ε {weakness}, so that `policy.{limit}` ({most}) limits too little"
            ));
        }
        Err(SecondaryError::Policy { field, rule, value: self.list.clone() })
    }

    /// Returns the warning about a weakness that the policy does not name.
    fn warning(&self) -> Option<String> {
        let Self { setting, value, field, .. } = self;
        let weakness = self.weakness.filter(|_| !self.is_named)?;
        Some(format!(
            "`{setting}` is {value}: the run's ε {weakness}. Name it in `policy.{field}` to accept it, or set \
             `policy.most_epsilon` to refuse it"
        ))
    }
}

/// Returns a value as a settings file would contain it.
fn word(value: &impl Serialize) -> String {
    toml::Value::try_from(value).map_or_else(|error| error.to_string(), |value| value.to_string())
}

/// A policy's rules on predictions.
#[derive(Debug, Clone, Copy)]
pub(super) struct PredictionRules {
    allowed: bool,
    least_rows: usize,
    /// Maximum number of records over all runs; 0 for no limit.
    pub(super) most: u64,
}

impl PredictionRules {
    pub(super) fn new(policy: &Policy) -> Self {
        Self { allowed: policy.predictions, least_rows: policy.least_rows, most: policy.most_predictions }
    }

    pub(super) fn check_allowed(self) -> Result<(), SecondaryError> {
        if self.allowed {
            return Ok(());
        }
        let rule = "must be true for predictions".to_string();
        Err(SecondaryError::Policy { field: "predictions", rule, value: "false".into() })
    }

    /// Returns the number of records including these, after `before` others; an error if the policy does not
    /// allow it.
    pub(super) fn count(self, before: u64, rows: usize) -> Result<u64, SecondaryError> {
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
}
