//! What a primary receives for training rows over a whole run.

use std::sync::{Arc, Mutex, PoisonError};

use fet_core::attack::{Arena, AttackError, Run, Trained, View};
use fet_core::data::Matrix;
use fet_core::message::{Block, Round};

/// No more values of a row are kept than these: fewer phases of a run are told apart where blocks are large.
const MOST: usize = 1_024;

/// Keeps what arrived for each row, as it is a linear part of what the attacker can compute: the sum over the releases of
/// each phase of the run.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The attacked party, from 0: its part where parts are seen, otherwise the sum of all.
    party: usize,
    /// Whether the attacked run shows sums alone; a run that shows parts instead has them added.
    summed: bool,
    /// Row, round and block, in the order of their arrival.
    seen: Vec<(usize, Round, Vec<f32>)>,
    width: usize,
}

/// What a primary saw of each row.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The rows that it saw something of, ascending.
    pub(crate) rows: Vec<usize>,
    /// One line for each of them: the mean block of each phase, zeros where the row did not come.
    pub(crate) values: Matrix<f32>,
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

    /// The mean block of each row in each phase of the run.
    fn by_phase(self) -> Seen {
        let steps = self.seen.iter().map(|(_, round, _)| place(*round)).max().unwrap_or(0) + 1;
        let phases = (MOST / self.width.max(1)).clamp(1, 4).min(steps as usize);
        let mut rows: Vec<usize> = self.seen.iter().map(|(row, ..)| *row).collect();
        rows.sort_unstable();
        rows.dedup();
        let columns = phases * self.width;
        let mut values = vec![0.0f32; rows.len() * columns];
        let mut counts = vec![0u32; rows.len() * phases];
        for (row, round, block) in &self.seen {
            let at = rows.binary_search(row).unwrap_or(0);
            let phase = (place(*round) * phases as u64 / steps) as usize;
            counts[at * phases + phase] += 1;
            let start = at * columns + phase * self.width;
            values[start..start + self.width].iter_mut().zip(block).for_each(|(sum, x)| *sum += x);
        }
        for (block, &count) in values.chunks_mut(self.width.max(1)).zip(&counts) {
            block.iter_mut().for_each(|value| *value /= count.max(1) as f32);
        }
        Seen { rows, values: Matrix::new(columns, values) }
    }
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
        let (shown, count) = if self.summed {
            (parts, active.len() as f32)
        } else {
            let place = active.iter().position(|&party| party == self.party);
            (place.and_then(|place| parts.get(place..=place)).unwrap_or_default(), 1.0)
        };
        let Some(first) = shown.first() else { return };
        let [_, positions, width] = first.shape();
        self.width = positions * width;
        let mut sum = vec![0.0; first.values().len()];
        for part in shown {
            sum.iter_mut().zip(part.values()).for_each(|(sum, value)| *sum += value);
        }
        for (&row, block) in rows.iter().zip(sum.chunks(self.width.max(1))) {
            self.seen.push((row, round, block.iter().map(|value| value / count).collect()));
        }
    }
}
