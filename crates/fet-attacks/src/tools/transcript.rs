//! What a primary receives for training rows over a whole run.

use std::sync::{Arc, Mutex, PoisonError};

use fet_core::attack::{Arena, AttackError, Run, Trained, View};
use fet_core::data::Matrix;
use fet_core::message::{Block, Round};

use super::ridge::solve;

/// No more values of a row are kept than these: fewer phases of a run are told apart where blocks are large.
const MOST: usize = 1_024;

/// Keeps what arrived for each row, as it is a linear part of what the attacker can compute: the sum over the releases of
/// each phase of the run, and the attacked party's part, solved from all sums over different parties.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The attacked party, from 0: its part where parts are seen, otherwise the sum of all.
    party: usize,
    /// Whether the attacked run shows sums alone; a run that shows parts instead has them added.
    summed: bool,
    /// In the order of their arrival.
    releases: Vec<Release>,
    width: usize,
}

/// A sum of blocks that arrived for a row.
#[derive(Debug)]
struct Release {
    row: usize,
    round: Round,
    /// The parties whose blocks are in the sum, from 0, ascending.
    parties: Arc<[usize]>,
    sum: Vec<f32>,
}

/// What a primary saw of each row.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The rows that it saw something of, ascending.
    pub(crate) rows: Vec<usize>,
    /// One line for each of them: the mean block of each phase, zeros where the row did not come. Where the sums are over
    /// different parties, the attacked party's part follows, which is one for the whole run.
    pub(crate) values: Matrix<f32>,
    /// Whether the parties of the sums differ.
    pub(crate) differ: bool,
}

impl Transcript {
    /// Trains a run, and keeps what arrives of `party`, from 1.
    pub(crate) fn train(
        arena: &mut dyn Arena,
        party: usize,
    ) -> Result<(Seen, Box<dyn Trained>), AttackError> {
        Self::of(arena, party, Run::default())
    }

    /// The same for a run of the attack's choice.
    pub(crate) fn of(
        arena: &mut dyn Arena,
        party: usize,
        run: Run,
    ) -> Result<(Seen, Box<dyn Trained>), AttackError> {
        let view = Arc::new(Mutex::new(Self {
            party: party - 1,
            summed: arena.setting().summed,
            ..Self::default()
        }));
        let trained = arena.train(Run { view: Some(view.clone()), ..run })?;
        let transcript = std::mem::take(&mut *view.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((transcript.by_phase(), trained))
    }

    /// The mean block of each row in each phase of the run, and the part of the attacked party in it where sums over different
    /// parties tell more than their mean.
    fn by_phase(self) -> Seen {
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
        Seen { rows, values: Matrix::new(blocks * self.width, values), differ }
    }

    /// The weighted sum of releases.
    fn combine(&self, releases: &[&Release], weights: &[f64]) -> Vec<f32> {
        let mut total = vec![0.0f64; self.width];
        for (release, weight) in releases.iter().zip(weights) {
            total.iter_mut().zip(&release.sum).for_each(|(total, &x)| *total += weight * f64::from(x));
        }
        total.into_iter().map(|value| value as f32).collect()
    }
}

/// The weights by which sums over these parties add up to the part of `party`: the least-squares solution of least norm, exact
/// where the sums determine the part.
fn solving(sets: &[&[usize]], party: usize) -> Vec<f64> {
    /// Small beside the number of sums, large beside what 64-bit floats lose.
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

/// Where in the run a training step stands; the single release of a frozen run is its first.
fn place(round: Round) -> u64 {
    if let Round::Train { step } = round { step } else { 0 }
}

impl View for Transcript {
    fn received(&mut self, round: Round, rows: &[usize], active: &[usize], parts: &[Block]) {
        if !matches!(round, Round::Train { .. } | Round::Once { .. }) {
            return;
        }
        // A sum is seen whoever takes part; a part only if the party does.
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

    /// A party's block of a row: other numbers for each.
    fn part(party: usize, row: usize) -> [f32; 2] {
        [(party * party + 1) as f32 * (row as f32 + 0.5), row as f32 - 3.0 * party as f32]
    }

    fn transcript(party: usize, sets: &[&[usize]]) -> Seen {
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

    /// Nothing separates two parties that are always there together.
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
