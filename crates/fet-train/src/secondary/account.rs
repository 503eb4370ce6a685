//! A party's own account: what its releases cost so far, and the releases that would cost more than it agreed to.
//!
//! It counts what it releases itself, each release with the parties that took part, by the mechanism that it agreed to, and
//! writes it down before it leaves (`ledger`). The limit is the smaller of `privacy.target_epsilon`, which the run's noise was
//! calibrated to, and `policy.most_epsilon`; where there is neither, the number of releases that were planned. A party whose
//! policy lets probes pass, as an attack in a simulation needs, is held by `policy.most_epsilon` alone.
//!
//! ε is not computed at each release. What was planned is within the limit; so is everything that costs no more, release by
//! release ([`Tally::is_within`]). Once a run does something else, as when it loses parties, the most releases of the present
//! kind that the limit allows are found by bisection, and those become the bound that releases are compared with.

use fet_core::message::Forward;
use fet_core::policy::Policy;
use fet_core::privacy::{PrivacyMechanism, Releases, Tally};
use sha2::{Digest as _, Sha256};

use super::ledger::{Digest, Entry, Ledger};
use super::{SecondaryError, Session, Store};

/// What a party lets its releases cost.
pub(super) struct Account {
    releases: Releases,
    frozen: bool,
    /// The setting that limits ε, and its value.
    limit: Option<(&'static str, f64)>,
    /// Whether there may be no more releases than planned.
    as_planned: bool,
    planned: Vec<Tally>,
    /// Releases that are within the limit.
    allowed: Vec<Tally>,
    /// Opened before the first release.
    ledger: Option<Ledger>,
    told: bool,
}

impl Account {
    /// The account of a run with these releases, whose cost as planned is within the policy.
    pub(super) fn new(releases: Releases, privacy: &dyn PrivacyMechanism, policy: &Policy) -> Self {
        let frozen = privacy.freezes_secondaries();
        let own =
            privacy.target().filter(|_| !policy.probes).map(|target| ("privacy.target_epsilon", target));
        let most = Some(("policy.most_epsilon", policy.most_epsilon)).filter(|(_, most)| *most > 0.0);
        let limit = own.into_iter().chain(most).min_by(|a, b| a.1.total_cmp(&b.1));
        let planned = planned(&releases, frozen);
        Self {
            releases,
            frozen,
            limit,
            as_planned: limit.is_none() && !policy.probes,
            allowed: planned.clone(),
            planned,
            ledger: None,
            told: false,
        }
    }

    /// Refuses a release by which these, it among them, would pass the limit.
    fn check(
        &mut self,
        privacy: &dyn PrivacyMechanism,
        made: Vec<Tally>,
        active: usize,
    ) -> Result<(), SecondaryError> {
        if self.is_allowed(&made) {
            return Ok(());
        }
        let count =
            |tallies: &[Tally]| if self.frozen { tallies.len() as u64 } else { tallies[0].releases() };
        let Some((setting, limit)) = self.limit else {
            let (most, found) = (count(&self.planned), count(&made));
            if !self.as_planned || found <= most {
                return Ok(());
            }
            let what = if self.frozen { "passes over the rows" } else { "releases" };
            let rule = format!("must be at most {most}, which were planned");
            return Err(SecondaryError::Spent { what, rule, value: found.to_string() });
        };
        let epsilon = privacy.epsilon(&self.releases, &made);
        if !within(epsilon, limit) {
            let rule = format!("must be at most `{setting}` ({limit}) with this release");
            return Err(SecondaryError::Spent { what: "ε", rule, value: format!("{epsilon:.4}") });
        }
        self.allowed = if self.frozen { made } else { self.most_like(privacy, made, active, limit) };
        Ok(())
    }

    /// Whether releases are within those that are known to be allowed.
    fn is_allowed(&self, made: &[Tally]) -> bool {
        // A pass of frozen parties costs what its fewest parties make it cost.
        let within = |made: &Tally, allowed: &Tally| {
            if self.frozen { made.fewest() >= allowed.fewest() } else { made.is_within(allowed) }
        };
        made.len() <= self.allowed.len() && made.iter().zip(&self.allowed).all(|(a, b)| within(a, b))
    }

    /// These releases and as many with `active` parties beside them as the limit allows, but for an eighth of them, at most
    /// as many as were planned.
    fn most_like(
        &self,
        privacy: &dyn PrivacyMechanism,
        made: Vec<Tally>,
        active: usize,
        limit: f64,
    ) -> Vec<Tally> {
        let with = |more: u64| {
            let mut all = Tally::of_all(&made);
            all.add(active, more);
            vec![all]
        };
        let (mut sound, mut bad) = (0, Tally::of_all(&self.planned).releases() + 1);
        let mut next = 1;
        while bad - sound > 1 + sound / 8 {
            if within(privacy.epsilon(&self.releases, &with(next)), limit) {
                sound = next
            } else {
                bad = next
            }
            // Doubled until one is too many, then halved between.
            next = (2 * sound).max(1).min(sound + (bad - sound) / 2).max(sound + 1);
        }
        with(sound)
    }
}

/// Whether ε is at most `limit`; what is no number is not.
pub(super) fn within(epsilon: f64, limit: f64) -> bool {
    epsilon <= limit
}

/// What a run releases that loses no party: in one tally, or in the pass of a frozen party.
pub(super) fn planned(releases: &Releases, frozen: bool) -> Vec<Tally> {
    let epoch = releases.of_epoch();
    vec![Tally::of_all(std::iter::repeat_n(&epoch, if frozen { 1 } else { releases.epochs }))]
}

impl Session {
    /// Counts a release before it leaves, or refuses it. `content` is a digest of what is released, but for the noise, which
    /// follows from it.
    pub(super) fn count(&mut self, message: &Forward, content: &[u8; 32]) -> Result<(), SecondaryError> {
        let (round, active) = (message.round.key(), message.active.len());
        let attempt = message.attempt.unwrap_or(0);
        let (privacy, account) = (self.privacy.as_ref(), &mut self.account);
        privacy.check_parties(&account.releases, active).map_err(|violation| violation.within("privacy"))?;
        let hash = Sha256::new().chain_update(self.seed.secret("ledger")).chain_update(round.to_le_bytes());
        let digest = hash.chain_update(attempt.to_le_bytes()).chain_update(content).finalize();
        let digest: Digest = digest.first_chunk().copied().unwrap_or_default();
        let ledger = open(account, &self.store, (&self.settings_hash, self.received.run()))?;
        if ledger.knows(&digest) {
            return Ok(());
        }
        let entry = Entry { round, attempt, active, digest };
        let made = ledger.with(entry).tallies();
        let earlier = ledger.knows_any();
        account.check(privacy, made, active)?;
        if earlier && !account.told {
            account.told = true;
            (self.tell)(format!(
                "{} is not what an earlier session of this run released: both are counted",
                message.round
            ));
        }
        self.keep_seed()?;
        let ledger = open(&mut self.account, &self.store, (&self.settings_hash, self.received.run()))?;
        Ok(ledger.write(entry)?)
    }

    /// The party's ledger, read when it is first needed; nothing where a run has no account.
    pub(super) fn ledger(&mut self) -> Result<Option<&mut Ledger>, SecondaryError> {
        if self.privacy.is_identity() {
            return Ok(None);
        }
        if self.links.is_none() {
            return Err(SecondaryError::NotLinked);
        }
        open(&mut self.account, &self.store, (&self.settings_hash, self.received.run())).map(Some)
    }
}

fn open<'a>(
    account: &'a mut Account,
    store: &Store,
    (settings_hash, run): (&[u8; 32], &[u8; 32]),
) -> Result<&'a mut Ledger, SecondaryError> {
    let Account { frozen, ledger, planned, .. } = account;
    if ledger.is_none() {
        let folder = match store {
            Store::Memory(_) => None,
            Store::Folder { own, .. } => Some(own.as_path()),
        };
        let planned = Tally::of_all(&*planned).releases();
        *ledger = Some(Ledger::open(folder, (settings_hash, run), *frozen, planned)?);
    }
    ledger.as_mut().ok_or(SecondaryError::NotJoined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::privacy::Randomness;
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
        let table = format!("kind = \"discrete-gaussian\"\nneighbouring = \"record\"\n{settings}");
        let table = table.parse().expect("TOML");
        let slot = Slot::<dyn PrivacyMechanism>::from_table(table).expect("sound settings");
        let mut mechanism = slot.build(&()).expect("sound settings");
        mechanism.prepare(&RELEASES).expect("a run that can be protected");
        mechanism
    }

    /// Releases of so many parties until one is refused.
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
            let rule =
                if settings.starts_with("target") { "privacy.target_epsilon` (8)" } else { "at most 80" };
            assert!(refused.contains(rule), "{refused}");
        }
    }

    /// Fewer parties than planned: releases go on to the limit, within one release of it, and a few evaluations of ε find it.
    #[test]
    fn releases_stop_at_the_limit_whoever_takes_part() {
        let mechanism = mechanism("target_epsilon = 8.0");
        let policy = Policy { most_epsilon: 6.0, ..Policy::default() };
        for (parties, limit) in [(4, 6.0), (3, 6.0), (2, 6.0), (6, 6.0)] {
            let mut account = Account::new(RELEASES, mechanism.as_ref(), &policy);
            // What was planned costs more: such a run would not be joined, and nothing is known to be allowed.
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
}
