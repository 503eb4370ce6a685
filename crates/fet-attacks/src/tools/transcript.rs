//! Transcript: the blocks that a primary receives for training rows over a whole run.

use std::sync::{Arc, Mutex, PoisonError};

use fet_core::attack::{AttackEnvironment, AttackError, PrimaryObserver, Run, Trained};
use fet_core::data::Matrix;
use fet_core::message::{Block, Round};

use super::ridge::solve;

/// Maximum number of values per row. Larger blocks are combined into fewer phases of a run.
const MOST: usize = 1_024;

/// Observer that collects the blocks of each row. It computes linear functions of the blocks: the mean over
/// the releases of each phase of the run, and the attacked party's part, solved from all sums over different
/// parties.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Attacked party, from 0. The transcript has its part if parts are visible, otherwise the sum of all
    /// parts.
    party: usize,
    /// True if the attacked run discloses only sums. The observer adds the parts of a run that discloses
    /// parts.
    summed: bool,
    /// Releases in the order of arrival.
    releases: Vec<Release>,
    width: usize,
}

/// Sum of blocks that arrived for a row.
#[derive(Debug)]
struct Release {
    row: usize,
    round: Round,
    /// Parties whose blocks are in the sum, from 0, ascending.
    parties: Arc<[usize]>,
    sum: Vec<f32>,
}

/// Values that a primary saw of each row.
#[derive(Debug)]
pub(crate) struct ObservedRows {
    /// Rows with any release, ascending.
    pub(crate) rows: Vec<usize>,
    /// Values of each row: the mean block of each phase, or zeros if the row did not occur in the phase. If
    /// the sums are over different parties, the attacked party's part over the whole run follows.
    pub(crate) values: Matrix<f32>,
    /// True if the sums are over different parties.
    pub(crate) differ: bool,
}

impl Transcript {
    /// Trains a run and records the blocks of `party`, from 1.
    pub(crate) fn train(
        environment: &mut dyn AttackEnvironment,
        party: usize,
    ) -> Result<(ObservedRows, Box<dyn Trained>), AttackError> {
        Self::record(environment, party, Run::default())
    }

    /// Trains the given run and records the blocks of `party`, from 1.
    pub(crate) fn record(
        environment: &mut dyn AttackEnvironment,
        party: usize,
        run: Run,
    ) -> Result<(ObservedRows, Box<dyn Trained>), AttackError> {
        let observer = Arc::new(Mutex::new(Self {
            party: party - 1,
            summed: environment.setting().summed,
            ..Self::default()
        }));
        let trained = environment.train(Run { observer: Some(observer.clone()), ..run })?;
        let transcript = std::mem::take(&mut *observer.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((transcript.by_phase(), trained))
    }

    /// Computes the mean block of each row in each phase. If the sums are over different parties, also
    /// computes the part of the attacked party.
    fn by_phase(self) -> ObservedRows {
        let differ = self.releases.windows(2).any(|pair| pair[0].parties != pair[1].parties);
        let steps = self.releases.iter().map(|release| place(release.round)).max().unwrap_or(0) + 1;
        let solved = usize::from(differ);
        let room = (MOST / self.width.max(1)).saturating_sub(solved);
        let phases = room.clamp(1, 4).min(steps as usize);
        let mut rows: Vec<usize> = self.releases.iter().map(|release| release.row).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut sorted: Vec<Vec<&Release>> = vec![Vec::new(); rows.len() * phases];
        for release in &self.releases {
            let at = rows.binary_search(&release.row).unwrap_or(0);
            let phase = (place(release.round) * phases as u64 / steps) as usize;
            sorted[at * phases + phase].push(release);
        }
        let blocks = phases + solved;
        let mut values = Vec::with_capacity(rows.len() * blocks * self.width);
        for of_row in sorted.chunks(phases) {
            for releases in of_row {
                let count = releases.len() as f64;
                let mean = |release: &&Release| 1.0 / (count * release.parties.len() as f64);
                values.extend(self.combine(releases, &releases.iter().map(mean).collect::<Vec<_>>()));
            }
            if differ {
                let releases = of_row.concat();
                let sets: Vec<&[usize]> = releases.iter().map(|release| &*release.parties).collect();
                values.extend(self.combine(&releases, &solving(&sets, self.party)));
            }
        }
        ObservedRows { rows, values: Matrix::new(blocks * self.width, values), differ }
    }

    /// Returns the weighted sum of releases.
    fn combine(&self, releases: &[&Release], weights: &[f64]) -> Vec<f32> {
        let mut total = vec![0.0f64; self.width];
        for (release, weight) in releases.iter().zip(weights) {
            total.iter_mut().zip(&release.sum).for_each(|(total, &x)| *total += weight * f64::from(x));
        }
        total.into_iter().map(|value| value as f32).collect()
    }
}

/// Returns the weights with which sums over these parties add up to the part of `party`. They are the
/// least-squares solution of minimum norm, exact if the sums determine the part.
fn solving(sets: &[&[usize]], party: usize) -> Vec<f64> {
    /// Small compared with the number of sums, large compared with the rounding error of 64-bit floats.
    const PENALTY: f64 = 1e-7;
    let mut all: Vec<usize> = sets.concat();
    all.sort_unstable();
    all.dedup();
    let Ok(attacked) = all.binary_search(&party) else { return vec![0.0; sets.len()] };
    let among: Vec<Vec<usize>> = sets
        .iter()
        .map(|set| set.iter().filter_map(|party| all.binary_search(party).ok()).collect())
        .collect();
    let n = all.len();
    let mut gram = vec![0.0; n * n];
    for set in &among {
        set.iter().flat_map(|&a| set.iter().map(move |&b| a * n + b)).for_each(|at| gram[at] += 1.0);
    }
    let mut target = vec![0.0; n];
    target[attacked] = 1.0;
    let solution = solve(&gram, n, PENALTY, &target, 1);
    among.iter().map(|set| set.iter().map(|&party| solution[party]).sum()).collect()
}

/// Returns the step of a round. The single release of a frozen run is step 0.
fn place(round: Round) -> u64 {
    if let Round::Train { step } = round { step } else { 0 }
}

impl PrimaryObserver for Transcript {
    fn received(&mut self, round: Round, rows: &[usize], active: &[usize], parts: &[Block]) {
        if !matches!(round, Round::Train { .. } | Round::Once { .. }) {
            return;
        }
        // A sum is visible for any set of active parties; a part is visible only if the party is active.
        let (shown, parties): (_, Arc<[usize]>) = if self.summed {
            (parts, active.into())
        } else {
            let place = active.iter().position(|&party| party == self.party);
            (place.and_then(|place| parts.get(place..=place)).unwrap_or_default(), [self.party].into())
        };
        let Some(first) = shown.first() else { return };
        let [_, positions, width] = first.shape();
        self.width = positions * width;
        let mut sum = vec![0.0; first.values().len()];
        for part in shown {
            sum.iter_mut().zip(part.values()).for_each(|(sum, value)| *sum += value);
        }
        for (&row, block) in rows.iter().zip(sum.chunks(self.width.max(1))) {
            self.releases.push(Release { row, round, parties: Arc::clone(&parties), sum: block.to_vec() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a party's block of a row, different for each party and row.
    fn part(party: usize, row: usize) -> [f32; 2] {
        [(party * party + 1) as f32 * (row as f32 + 0.5), row as f32 - 3.0 * party as f32]
    }

    fn transcript(party: usize, sets: &[&[usize]]) -> ObservedRows {
        let mut transcript = Transcript { party, summed: true, ..Transcript::default() };
        let rows = [4, 7];
        for (step, active) in sets.iter().enumerate() {
            let sums = rows.map(|row| {
                let add = |sum: [f32; 2], part: [f32; 2]| [sum[0] + part[0], sum[1] + part[1]];
                active.iter().map(|&party| part(party, row)).fold([0.0; 2], add)
            });
            let sum = Block::new([2, 1, 2], sums.concat()).expect("a full shape");
            transcript.received(Round::Train { step: step as u64 }, &rows, active, &[sum]);
        }
        transcript.by_phase()
    }

    #[test]
    fn solves_sums_over_different_parties_for_each_part() {
        for party in 0..4 {
            let seen = transcript(party, &[&[0, 1, 2], &[1, 2, 3], &[0, 2, 3], &[0, 1, 3], &[0, 1, 2]]);
            let phases = 4;
            assert!(seen.differ && seen.rows == [4, 7] && seen.values.columns() == 2 * (phases + 1));
            for (at, &row) in seen.rows.iter().enumerate() {
                let found = &seen.values.row(at)[2 * phases..];
                for (found, planted) in found.iter().zip(part(party, row)) {
                    assert!((found - planted).abs() < 1e-3, "party {party}, row {row}: {found} {planted}");
                }
            }
        }
    }

    /// Sums cannot separate two parties that are always active together.
    #[test]
    fn sums_over_the_same_parties_give_their_mean_alone() {
        let seen = transcript(0, &[&[0, 1], &[0, 1]]);
        let mean = |row| (part(0, row)[0] + part(1, row)[0]) / 2.0;
        assert!(!seen.differ && seen.values.columns() == 4, "two phases");
        assert!((seen.values.row(0)[0] - mean(4)).abs() < 1e-5, "{:?}", seen.values);
        let seen = transcript(0, &[&[0, 1], &[0, 1, 2]]);
        assert!((seen.values.row(0)[4] - mean(4)).abs() < 1e-3, "{:?}", seen.values);
    }

    #[test]
    fn weights_of_a_party_that_was_never_there_are_zeros() {
        assert_eq!(solving(&[&[0, 1], &[1, 2]], 3), [0.0, 0.0]);
        assert!(solving(&[], 0).is_empty());
    }
}
