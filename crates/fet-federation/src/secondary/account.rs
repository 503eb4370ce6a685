//! A party's privacy account: the cost of its releases so far, and the refusal of releases beyond the agreed
//! cost.
//!
//! The account counts the party's own releases by the mechanism that the party agreed to, each with the
//! number of parties that took part. The party writes a release to the `ledger` before the release leaves.
//! The limits are on ε: `privacy.target_epsilon`, the target of the run's calibration, and
//! `policy.most_epsilon`. Without either, the limit is the ε of the planned run: releases with fewer parties
//! cost more each and exhaust the limit sooner. If a party's policy allows probes, as an attack in a
//! simulation needs, only `policy.most_epsilon` limits it.
//!
//! A guarantee that rests on sampling is proved for planned releases, in any order. A party with such a
//! guarantee makes no other releases, whatever their ε would be.
//!
//! The account does not compute ε at each release. Planned releases are within the limits, and so is every
//! sequence that costs no more, release by release ([`Tally::is_within`]). Once a run deviates from its plan,
//! for example because parties drop out, bisection finds the largest number of releases of the present kind
//! that the limits allow. Later releases are compared with that bound.

use fet_core::policy::Policy;
use fet_core::privacy::{PrivacyMechanism, Releases, Tally};

use super::error::SecondaryError;
use super::ledger::{Counting, Ledger};
use super::lifetime::Spending;
use super::state::Store;
use crate::privacy::{planned, within};

/// The cost that a party allows its releases.
pub(super) struct Account {
    releases: Releases,
    counting: Counting,
    limits: Vec<Limit>,
    /// δ of the limit, if the ε of the planned run is the limit. That ε is computed on first use.
    limited_by_plan: Option<f64>,
    planned: Vec<Tally>,
    /// Releases that are within the limits.
    allowed: Vec<Tally>,
    /// Ledger of the run, opened before the first release.
    ledger: Option<Ledger>,
    /// True if the lifetime account alone keeps the releases, because they are predictions.
    in_memory: bool,
    /// The session's part in the party's lifetime account; `None` without such an account.
    pub(super) lifetime: Option<Spending>,
    /// True if the operator knows that a release was repeated with other content.
    pub(super) warned: bool,
}

/// A limit on the ε of a run.
#[derive(Clone)]
struct Limit {
    name: String,
    epsilon: f64,
    delta: f64,
    /// True if ε is that of ideal noise, which still compares costs if no ε is bounded.
    ideal: bool,
}

impl Limit {
    /// Refuses releases that cost more than the limit.
    fn check(
        &self,
        privacy: &dyn PrivacyMechanism,
        releases: &Releases,
        made: &[Tally],
    ) -> Result<(), SecondaryError> {
        let epsilon = if self.ideal {
            privacy.ideal_epsilon_at(releases, made, self.delta)
        } else {
            privacy.epsilon_at(releases, made, self.delta)
        };
        if within(epsilon, self.epsilon) {
            return Ok(());
        }
        let rule = format!("must be at most {} at δ = {:e} with this release", self.name, self.delta);
        Err(SecondaryError::Spent { what: "ε", rule, value: format!("{epsilon:.4}") })
    }
}

impl Account {
    /// Makes the account of a run with these releases; the policy already allows their planned cost.
    pub(super) fn new(releases: Releases, privacy: &dyn PrivacyMechanism, policy: &Policy) -> Self {
        let target = privacy.target().filter(|_| !policy.probes);
        Self::with_target(releases, privacy, policy, target)
    }

    fn with_target(
        releases: Releases,
        privacy: &dyn PrivacyMechanism,
        policy: &Policy,
        target: Option<f64>,
    ) -> Self {
        let counting = Counting {
            frozen: privacy.freezes_secondaries(),
            sampled: privacy.claims_amplification(),
            apart: false,
        };
        let limit = |name: &str, epsilon: f64, delta| {
            let name = format!("`{name}` ({epsilon})");
            (epsilon > 0.0).then_some(Limit { name, epsilon, delta, ideal: false })
        };
        let delta = privacy.spent(&releases, &[]).delta;
        let limits: Vec<Limit> = [
            limit("privacy.target_epsilon", target.unwrap_or(0.0), delta),
            limit("policy.most_epsilon", policy.most_epsilon, policy.most_delta),
        ]
        .into_iter()
        .flatten()
        .collect();
        let planned = planned(&releases, counting.frozen);
        let limited_by_plan = limits.is_empty() && !policy.probes;
        Self {
            releases,
            counting,
            limited_by_plan: limited_by_plan.then(|| delta.min(policy.most_delta)),
            limits,
            allowed: planned.clone(),
            planned,
            ledger: None,
            in_memory: false,
            lifetime: None,
            warned: false,
        }
    }

    /// Makes the account of a session of predictions by a finished run with these releases. No prediction was planned: each
    /// batch counts as one more release, or as one more pass over all rows. `policy.most_epsilon` limits the session, and the
    /// lifetime account all sessions and runs.
    pub(super) fn for_predictions(
        releases: Releases,
        privacy: &dyn PrivacyMechanism,
        policy: &Policy,
    ) -> Self {
        let mut account = Self::with_target(releases, privacy, policy, None);
        account.counting.apart = true;
        (account.limited_by_plan, account.in_memory) = (None, true);
        (account.planned, account.allowed) = (Vec::new(), Vec::new());
        account
    }

    /// Returns the planned releases of the run.
    pub(super) fn releases(&self) -> &Releases {
        &self.releases
    }

    /// Returns the account with the session's part in the party's lifetime account.
    #[must_use]
    pub(super) fn with_lifetime(self, lifetime: Spending) -> Self {
        Self { lifetime: Some(lifetime), ..self }
    }

    /// Refuses a release if `made`, which includes it, would exceed a limit.
    pub(super) fn check(
        &mut self,
        privacy: &dyn PrivacyMechanism,
        made: Vec<Tally>,
        active: usize,
    ) -> Result<(), SecondaryError> {
        let unlimited = self.limits.is_empty() && self.limited_by_plan.is_none();
        if unlimited || self.is_allowed(&made) {
            return Ok(());
        }
        if self.counting.sampled {
            let why = "must be those planned, with at least as many parties: `privacy.amplification` is proved only for these";
            return Err(self.unplanned(why, &made, active));
        }
        if let Some(delta) = self.limited_by_plan.take() {
            self.limits.push(self.limit_of_plan(privacy, delta));
        }
        if self.limits.iter().any(|limit| limit.epsilon.is_infinite()) {
            let why = "must be those planned, with at least as many parties: the ε of the planned run is \
                unbounded and cannot limit other releases";
            return Err(self.unplanned(why, &made, active));
        }
        self.limits.iter().try_for_each(|limit| limit.check(privacy, &self.releases, &made))?;
        self.allowed = if self.counting.frozen { made } else { self.most_like(privacy, made, active) };
        Ok(())
    }

    /// Returns the limit for settings without one. A millionth is added, since rounding depends slightly on
    /// the number of parties.
    fn limit_of_plan(&self, privacy: &dyn PrivacyMechanism, delta: f64) -> Limit {
        let planned = privacy.ideal_epsilon_at(&self.releases, &self.planned, delta);
        let name = format!(
            "that of the planned run ({planned:.4}), since neither `privacy.target_epsilon` nor `policy.most_epsilon` is set,"
        );
        Limit { name, epsilon: planned * (1.0 + 1e-6), delta, ideal: true }
    }

    /// Makes the refusal of a release that was not planned.
    fn unplanned(&self, rule: &str, made: &[Tally], active: usize) -> SecondaryError {
        let count = |tallies: &[Tally]| {
            if self.counting.frozen { tallies.len() as u64 } else { tallies[0].releases() }
        };
        let what = if self.counting.frozen { "passes over the rows" } else { "releases" };
        let value = format!("number {} of {}, with {active} parties", count(made), count(&self.planned));
        SecondaryError::Spent { what, rule: rule.to_string(), value }
    }

    /// Reserves in the lifetime account all releases that the run may make, including `made`.
    pub(super) fn reserve(
        &mut self,
        privacy: &dyn PrivacyMechanism,
        made: Vec<Tally>,
        active: usize,
    ) -> Result<(), SecondaryError> {
        if self.lifetime.is_none() {
            return Ok(());
        }
        if !self.is_allowed(&made) {
            // The run's settings have no limit: the party reserves an eighth more than it has released.
            self.allowed = made.clone();
            if !self.counting.frozen {
                let mut more = Tally::of_all(&made);
                more.add(active, more.releases() / 8);
                self.allowed = vec![more];
            }
        }
        let Some(lifetime) = self.lifetime.as_mut().filter(|known| !known.has_reserved(&self.allowed)) else {
            return Ok(());
        };
        if let Some(ledger) = &self.ledger {
            lifetime.settle(ledger.records());
        }
        if lifetime.reserve(privacy, &self.releases, &self.allowed).is_err() {
            // The lifetime limit may allow the next release, but not all releases that the run's limit
            // allows.
            lifetime.reserve(privacy, &self.releases, &made)?;
            self.allowed = made;
        }
        Ok(())
    }

    /// Notes in the lifetime account that representations leave without protection.
    pub(super) fn unprotected(&mut self, privacy: &dyn PrivacyMechanism) -> Result<(), SecondaryError> {
        self.reserve(privacy, self.planned.clone(), 0)
    }

    /// Returns unused reservations to the lifetime account.
    pub(super) fn close(&mut self, privacy: &dyn PrivacyMechanism) -> Result<(), SecondaryError> {
        let (Some(ledger), Some(lifetime)) = (self.ledger.take(), &mut self.lifetime) else { return Ok(()) };
        let (made, records) = (ledger.counted().tallies(), ledger.records());
        // The ledger's end must be on the disk first: otherwise the ledger could have fewer records than the
        // account knows.
        drop(ledger);
        lifetime.close(privacy, &self.releases, &made, records)
    }

    /// Returns true if releases are within those known to be allowed.
    fn is_allowed(&self, made: &[Tally]) -> bool {
        // The smallest number of active parties determines the cost of a pass of frozen parties.
        let within = |made: &Tally, allowed: &Tally| {
            if self.counting.frozen { made.fewest() >= allowed.fewest() } else { made.is_within(allowed) }
        };
        made.len() <= self.allowed.len() && made.iter().zip(&self.allowed).all(|(a, b)| within(a, b))
    }

    /// Returns these releases with additional releases of `active` parties: at most as many as were planned,
    /// and as many as the limits allow to within an eighth.
    fn most_like(&self, privacy: &dyn PrivacyMechanism, made: Vec<Tally>, active: usize) -> Vec<Tally> {
        let with = |more: u64| {
            let mut all = Tally::of_all(&made);
            all.add(active, more);
            vec![all]
        };
        let allows = |made: &[Tally]| {
            self.limits.iter().all(|limit| limit.check(privacy, &self.releases, made).is_ok())
        };
        let (mut sound, mut bad) = (0, Tally::of_all(&self.planned).releases() + 1);
        let mut next = 1;
        while bad - sound > 1 + sound / 8 {
            if allows(&with(next)) {
                sound = next
            } else {
                bad = next
            }
            // Doubles until the limits refuse, then bisects.
            next = (2 * sound).max(1).min(sound + (bad - sound) / 2).max(sound + 1);
        }
        with(sound)
    }
}

/// Opens the ledger on first use.
pub(super) fn open<'a>(
    account: &'a mut Account,
    store: &Store,
    (settings_hash, run): (&[u8; 32], &[u8; 32]),
) -> Result<&'a mut Ledger, SecondaryError> {
    let Account { counting, ledger, planned, in_memory, .. } = account;
    if ledger.is_none() {
        let folder = match store {
            Store::Folder { own, .. } if !*in_memory => Some(own.as_path()),
            _ => None,
        };
        let planned = Tally::of_all(&*planned).releases();
        *ledger = Some(Ledger::open(folder, (settings_hash, run), *counting, planned)?);
    }
    ledger.as_mut().ok_or(SecondaryError::NotJoined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::privacy::{Neighbouring, Randomness};
    use fet_core::registry::Slot;

    /// Eight epochs of nine steps with four of six parties, and an evaluation with all.
    const RELEASES: Releases = Releases {
        epochs: 8,
        train_steps: 9,
        evaluation_steps: 1,
        rows: 32,
        all_rows: 400,
        train_active: 4,
        active: 6,
        block: 64,
        summed: true,
        randomness: Randomness::Experiment,
    };

    fn mechanism(settings: &str) -> Box<dyn PrivacyMechanism> {
        mechanism_of("discrete-gaussian", &format!("neighbouring = \"record\"\n{settings}"), &RELEASES)
    }

    fn mechanism_of(kind: &str, settings: &str, releases: &Releases) -> Box<dyn PrivacyMechanism> {
        let table = format!("kind = \"{kind}\"\n{settings}").parse().expect("TOML");
        let slot = Slot::<dyn PrivacyMechanism>::from_table(table).expect("sound settings");
        let mut mechanism = slot.build(&()).expect("sound settings");
        mechanism.prepare(releases).expect("a run that can be protected");
        mechanism
    }

    /// Makes releases with these numbers of parties until one is refused.
    fn release(
        account: &mut Account,
        mechanism: &dyn PrivacyMechanism,
        parties: impl Iterator<Item = usize>,
    ) -> (Tally, Option<String>) {
        let mut made = Tally::default();
        for active in parties {
            let mut next = made.clone();
            next.add(active, 1);
            if let Err(error) = account.check(mechanism, vec![next.clone()], active) {
                return (made, Some(error.to_string()));
            }
            made = next;
        }
        (made, None)
    }

    #[test]
    fn a_planned_run_is_let_through_and_not_a_release_more() {
        let epochs = || (0..8).flat_map(|_| std::iter::repeat_n(4, 9).chain([6]));
        for (settings, policy) in
            [("target_epsilon = 8.0", 0.0), ("noise = 30.0", 0.0), ("target_epsilon = 8.0", 9.0)]
        {
            let mechanism = mechanism(settings);
            let policy = Policy { most_epsilon: policy, ..Policy::default() };
            let mut account = Account::new(RELEASES, mechanism.as_ref(), &policy);
            let (made, refused) = release(&mut account, mechanism.as_ref(), epochs());
            assert_eq!((made.releases(), refused), (80, None), "{settings}");
            let (made, refused) = release(&mut account, mechanism.as_ref(), epochs().chain([6, 6, 6, 6, 6]));
            let refused = refused.expect("refused");
            assert!(made.releases() < 83, "{settings}: {made:?}");
            let planned = mechanism.epsilon(&RELEASES, &planned(&RELEASES, false));
            let rule = if settings.starts_with("target") {
                "privacy.target_epsilon` (8) at δ = 1e-5".to_string()
            } else {
                format!("at most that of the planned run ({planned:.4})")
            };
            assert!(refused.contains(&rule), "{refused}");
        }
    }

    /// With fewer parties than planned, releases continue until the limit, to within one release, and a few
    /// evaluations of ε find it.
    #[test]
    fn releases_stop_at_the_limit_whoever_takes_part() {
        let mechanism = mechanism("target_epsilon = 8.0");
        let policy = Policy { most_epsilon: 6.0, ..Policy::default() };
        for (parties, limit) in [(4, 6.0), (3, 6.0), (2, 6.0), (6, 6.0)] {
            let mut account = Account::new(RELEASES, mechanism.as_ref(), &policy);
            // The plan costs more than the limit: a party would not join such a run, and no release is known
            // to be allowed.
            account.allowed = vec![Tally::default()];
            let (made, refused) =
                release(&mut account, mechanism.as_ref(), std::iter::repeat_n(parties, 9999));
            let epsilon = |made: &Tally| mechanism.epsilon(&RELEASES, std::slice::from_ref(made));
            let mut more = made.clone();
            more.add(parties, 1);
            assert!(epsilon(&made) <= limit && epsilon(&more) > limit, "{parties}: {made:?}");
            let refused = refused.expect("refused");
            assert!(
                refused.contains("`policy.most_epsilon` (6)") && refused.contains("it is 6."),
                "{refused}"
            );
        }
    }

    #[test]
    fn whatever_is_within_costs_no_more() {
        let mechanism = mechanism("noise = 30.0");
        let tally = |counts: &[(usize, u64)]| {
            let mut tally = Tally::default();
            counts.iter().for_each(|&(active, releases)| tally.add(active, releases));
            tally
        };
        let all = [
            tally(&[]),
            tally(&[(6, 10)]),
            tally(&[(4, 3), (6, 7)]),
            tally(&[(4, 3), (5, 7)]),
            tally(&[(2, 1), (6, 9)]),
            tally(&[(2, 1), (4, 3)]),
            tally(&[(3, 11)]),
        ];
        let epsilon = |tally: &Tally| mechanism.epsilon(&RELEASES, std::slice::from_ref(tally));
        let mut within = 0;
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            if a.is_within(b) {
                within += 1;
                assert!(epsilon(a) <= epsilon(b), "{a:?} {b:?}");
            }
        }
        assert_eq!(within, 20, "of 49 pairs");
        assert!(!all[4].is_within(&all[3]) && all[2].is_within(&all[3]));
    }

    /// Returns ε of releases by exact composition, from the statement's sensitivity for `record`: all rows
    /// move by 2C/|A| each.
    fn exact(made: &Tally, releases: &Releases, noise: f64, delta: f64) -> f64 {
        let one = |active: usize| 4.0 * releases.rows as f64 / (noise * active as f64).powi(2);
        let mu = made.iter().map(|(active, count)| count as f64 * one(active)).sum::<f64>().sqrt();
        fet_privacy::accountant::gaussian::epsilon(mu, delta)
    }

    /// An attack on a party without a limit in its settings: the primary claims that the other parties
    /// dropped out. The number of releases is as planned, but they cost a multiple of the plan.
    #[test]
    fn claimed_drop_outs_cannot_raise_the_cost_above_the_plan() {
        let ten = Releases { train_active: 10, active: 10, ..RELEASES };
        // A sum needs at least six of ten parties; separately visible parts can come from one party.
        for (summed, left, attack) in [(false, 1, 14.0), (true, 6, 1.7)] {
            let releases = Releases { summed, ..ten };
            let record = |setting: &str| {
                mechanism_of("discrete-gaussian", &format!("neighbouring = \"record\"\n{setting}"), &releases)
            };
            let noise =
                record("target_epsilon = 1.0").spent(&releases, &[]).guarantee.expect("bounded").noise;
            let mechanism = record(&format!("noise = {noise}"));
            let all = planned(&releases, false);
            let mut account = Account::new(releases, mechanism.as_ref(), &Policy::default());
            let (made, refused) = release(&mut account, mechanism.as_ref(), std::iter::repeat_n(left, 80));
            // The planned number of releases, with the parties that the primary names.
            let mut asked = Tally::default();
            asked.add(left, all[0].releases());
            assert_eq!(asked.releases(), 80);
            assert!(
                exact(&asked, &releases, noise, 1e-5) > attack,
                "{summed}: the attack succeeds without an account"
            );
            assert!(made.releases() < 80, "{summed}: {made:?}");
            assert!(exact(&made, &releases, noise, 1e-5) <= 1.0 + 1e-6, "{summed}: {made:?}");
            let refused = refused.expect("refused");
            for part in
                ["that of the planned run (1.0000)", "`privacy.target_epsilon`", "`policy.most_epsilon`"]
            {
                assert!(refused.contains(part), "{part} in {refused}");
            }
        }
    }

    /// If integer sampling leaves ε unbounded, the account still compares the cost.
    #[test]
    fn claimed_drop_outs_cannot_raise_a_cost_that_no_epsilon_bounds() {
        let mechanism = mechanism("noise = 0.5");
        assert!(mechanism.epsilon(&RELEASES, &planned(&RELEASES, false)).is_infinite());
        let mut account = Account::new(RELEASES, mechanism.as_ref(), &Policy::default());
        let (made, refused) = release(&mut account, mechanism.as_ref(), std::iter::repeat_n(2, 80));
        // With two of four parties, each release costs four times as much.
        assert!((15..=25).contains(&made.releases()), "{made:?}");
        assert!(refused.expect("refused").contains("ε must be at most that of the planned run"));
    }

    /// For a mechanism without any ε, the account compares releases with the plan itself.
    #[test]
    fn a_plan_without_any_figure_allows_its_releases_and_no_others() {
        let mechanism = mechanism_of("gaussian", "noise = 0.000001", &RELEASES);
        let epochs = || (0..8).flat_map(|_| std::iter::repeat_n(4, 9).chain([6]));
        let mut account = Account::new(RELEASES, mechanism.as_ref(), &Policy::default());
        let (made, refused) = release(&mut account, mechanism.as_ref(), epochs().chain([6]));
        assert_eq!(made.releases(), 80);
        assert!(refused.expect("one more").contains("unbounded"));
        let mut account = Account::new(RELEASES, mechanism.as_ref(), &Policy::default());
        let (made, refused) = release(&mut account, mechanism.as_ref(), [4, 3].into_iter());
        assert_eq!(made.releases(), 1);
        assert!(refused.expect("with fewer parties").contains("at least as many parties"));
    }

    /// Amplification by sampling is proved for planned releases in any order and never beyond, whatever limit
    /// the settings have.
    #[test]
    fn a_guarantee_by_sampling_covers_planned_releases_alone() {
        let sampled = "neighbouring = \"add-remove\"\nlearning = \"assumed\"\nmax_occurrences = 1\n\
                       amplification = true\nsample_rate = 0.1\nnoise = 4.0";
        let mechanism = mechanism_of("discrete-gaussian", sampled, &RELEASES);
        let named = || vec![Neighbouring::AddRemove];
        for most_epsilon in [0.0, 1000.0] {
            let policy = Policy { most_epsilon, neighbouring: named(), ..Policy::default() };
            let stops = |parties: &[(usize, usize)]| {
                let mut account = Account::new(RELEASES, mechanism.as_ref(), &policy);
                let all = parties.iter().flat_map(|&(active, count)| std::iter::repeat_n(active, count));
                let (made, refused) = release(&mut account, mechanism.as_ref(), all);
                (made.releases(), refused.unwrap_or_default())
            };
            assert_eq!(stops(&[(6, 8), (4, 72)]), (80, String::new()));
            for (parties, most) in [(&[(4, 90)][..], 72), (&[(6, 90)], 80), (&[(3, 1)], 0)] {
                let (made, refused) = stops(parties);
                assert_eq!(made, most, "{parties:?}");
                for part in ["must be those planned", "`privacy.amplification`", "of 80, with"] {
                    assert!(refused.contains(part), "{part} in {refused}");
                }
            }
        }
    }

    /// The policy's δ applies: a costlier run could meet a limit on ε at a larger δ.
    #[test]
    fn the_limit_of_the_policy_is_at_its_own_delta() {
        let mechanism = mechanism("noise = 30.0\ndelta = 0.5");
        let noise = 30.0;
        for most_delta in [1e-9, 1e-5, 1e-2] {
            let policy = Policy { most_epsilon: 6.0, most_delta, ..Policy::default() };
            let mut account = Account::new(RELEASES, mechanism.as_ref(), &policy);
            account.allowed = vec![Tally::default()];
            let (made, refused) = release(&mut account, mechanism.as_ref(), std::iter::repeat_n(3, 9999));
            let mut more = made.clone();
            more.add(3, 1);
            let epsilon = |made: &Tally| exact(made, &RELEASES, noise, most_delta);
            assert!(epsilon(&made) <= 6.0 && epsilon(&more) > 5.99, "{most_delta}: {made:?}");
            assert!(refused.expect("refused").contains(&format!("(6) at δ = {most_delta:e}")));
        }
        // Without a limit, the plan's cost is compared at the smaller δ.
        let account = Account::new(RELEASES, mechanism.as_ref(), &Policy::default());
        assert_eq!(account.limited_by_plan, Some(1e-5));
    }
}
