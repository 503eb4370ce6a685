//! Cost of the run so far, release by release, and its end before an epoch that would exceed the target.

use fet_core::privacy::{Randomness, Releases, Tally};

use super::{Progress, RunError, Trainer};

impl Trainer {
    /// Counts releases of the current epoch with `active` parties. Releases after the last epoch belong to
    /// that epoch.
    pub(super) fn charge(&mut self, active: usize, releases: u64) {
        let epoch = self.progress.epochs.len();
        let after = self.is_done() && epoch > 0;
        let tallies = &mut self.progress.tallies;
        let epochs = if after { epoch } else { epoch + 1 };
        if tallies.len() < epochs {
            tallies.resize(epochs, Tally::default());
        }
        if let Some(last) = tallies.last_mut() {
            last.add(active, releases);
        }
    }

    /// Counts an evaluation of the test rows that was not made, because the decision whether to make it
    /// depends on earlier releases.
    pub(super) fn charge_test(&mut self) {
        if !(self.federation.is_empty() || self.privacy.freezes_secondaries()) {
            self.charge(self.here().len(), self.schedule.test_batches() as u64);
        }
    }

    /// Ends the run if parties dropped out and another epoch with the remaining parties would exceed the
    /// target. Warns if the cost already exceeds the target.
    pub(super) fn keep_to_target(&mut self) {
        // A run without dropped-out parties costs what was planned.
        if self.progress.gone.is_empty() && self.progress.lost.is_empty() {
            return;
        }
        let releases = self.progress.releases;
        let Some(target) = self.privacy.target() else { return };
        let next = self.next_epoch();
        let with_next = [self.counted().as_slice(), std::slice::from_ref(&next)].concat();
        if self.privacy.epsilon(&releases, &with_next) <= target {
            return;
        }
        let lost: Vec<String> =
            self.progress.gone.iter().map(|&party| format!("\"{}\"", self.federation.name(party))).collect();
        let lost = lost.join(", ");
        let (done, all) = (self.progress.epochs.len(), self.epochs());
        let mut warnings = Vec::new();
        if self.privacy.epsilon(&releases, &self.counted()) > target {
            warnings.push(format!(
                "the run costs more than `privacy.target_epsilon`: it lost {lost}, and the releases of the same epoch with \
                 fewer parties cost more than was planned"
            ));
        }
        if next.releases() > 0 {
            self.progress.stopped = true;
            warnings.push(format!(
                "the run stopped after {done} of {all} epochs: it lost {lost}, and another epoch with \
                 the remaining parties would cost more than `privacy.target_epsilon`"
            ));
        }
        warnings.retain(|warning| !self.progress.warnings.contains(warning));
        self.warnings.extend(warnings.iter().cloned());
        self.progress.warnings.extend(warnings);
    }

    /// Returns the releases so far by epoch, including releases of earlier sessions beyond their checkpoints.
    pub(super) fn counted(&self) -> Vec<Tally> {
        let Progress { tallies, lost, .. } = &self.progress;
        if self.privacy.freezes_secondaries() {
            return [tallies.as_slice(), lost].concat();
        }
        let (last, before) =
            tallies.split_last().map_or((None, tallies.as_slice()), |(last, all)| (Some(last), all));
        let last = Tally::of_all(last.into_iter().chain(lost));
        before.iter().cloned().chain([last]).collect()
    }

    /// Counts the possible releases of `earlier` earlier sessions after the state that this session continues
    /// from: at most an epoch each, or a pass over all rows. With own seeds and secure aggregation, parties
    /// add new noise in each session, so that a repeated release is another release. Returns true if any of
    /// these sessions was not counted yet.
    pub fn count_sessions(&mut self, earlier: u64) -> bool {
        let more = earlier.saturating_sub(self.progress.sessions);
        self.progress.sessions = earlier;
        let Releases { randomness, summed, .. } = self.progress.releases;
        let anew = randomness == Randomness::Own && summed && !self.privacy.is_identity();
        let frozen = self.privacy.freezes_secondaries();
        if more == 0 || !anew || self.is_done() || (frozen && self.released.is_some()) {
            return more > 0;
        }
        let mut epoch = self.next_epoch();
        if frozen {
            epoch.add(self.here().len(), 1);
        }
        self.progress.lost.extend(std::iter::repeat_n(epoch, more as usize));
        let warning = format!(
            "{more} earlier {} of this run ended without a checkpoint of all releases: the releases \
             that may be missing are counted too",
            if more == 1 { "session" } else { "sessions" }
        );
        self.warnings.push(warning.clone());
        self.progress.warnings.push(warning);
        true
    }

    /// Ends the run after a party's account refused a release.
    pub(super) fn end_within_epoch(&mut self, refused: &RunError) {
        self.progress.stopped = true;
        let (done, all) = (self.progress.epochs.len(), self.epochs());
        let warning =
            format!("the run stopped after {done} of {all} epochs, within the next epoch: {refused}");
        self.warnings.push(warning.clone());
        self.progress.warnings.push(warning);
    }

    /// Returns the releases of the next epoch, if there is one and no other party drops out.
    fn next_epoch(&self) -> Tally {
        let mut next = Tally::default();
        if self.is_done() || self.privacy.freezes_secondaries() {
            return next;
        }
        let epoch = self.progress.epochs.len();
        for step in 0..self.schedule.steps() {
            next.add(self.active_parties(self.schedule.training(epoch, step)).len(), 1);
        }
        next.add(self.here().len(), self.progress.releases.evaluation_steps as u64);
        next
    }
}
