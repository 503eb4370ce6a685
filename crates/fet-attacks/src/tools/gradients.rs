//! The gradients that a secondary receives, row by row.

use std::sync::{Arc, Mutex, PoisonError};

use fet_core::attack::{Arena, AttackError, Door, Run, Trained};
use fet_core::message::{Backward, Block, Request, Round};

/// What a secondary received for one row in one step.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// The row.
    pub(crate) row: usize,
    /// How often the row came before.
    pub(crate) before: usize,
    /// The sum of the gradient over positions.
    pub(crate) sum: Vec<f64>,
    /// The norm of the whole gradient.
    pub(crate) norm: f64,
}

/// A door that keeps the gradients that pass it.
#[derive(Debug, Default)]
pub(crate) struct Curious {
    /// What multiplies the step size of the party's own program: more than 1 where it wants the primary's model to rely on
    /// it (active model completion).
    boost: Option<f64>,
    asked: Option<(Round, Vec<u32>)>,
    seen: Vec<usize>,
    /// In the order in which they came.
    received: Vec<Received>,
}

impl Curious {
    /// A door whose party learns with so many times the agreed step size.
    pub(crate) fn hurried(boost: f64) -> Self {
        Self { boost: (boost != 1.0).then_some(boost), ..Self::default() }
    }

    /// Trains a run in which `party` keeps the gradients.
    pub(crate) fn train(
        self,
        arena: &mut dyn Arena,
        party: usize,
    ) -> Result<(Vec<Received>, Box<dyn Trained>), AttackError> {
        let door = Arc::new(Mutex::new(self));
        let trained = arena.train(Run { door: Some((party, door.clone())), ..Run::default() })?;
        let received = std::mem::take(&mut door.lock().unwrap_or_else(PoisonError::into_inner).received);
        Ok((received, trained))
    }

    fn keep(&mut self, rows: &[u32], gradient: &Block) {
        let [_, positions, width] = gradient.shape();
        for (&row, values) in rows.iter().zip(gradient.values().chunks((positions * width).max(1))) {
            let row = row as usize;
            let mut sum = vec![0.0; width];
            for position in values.chunks(width.max(1)) {
                sum.iter_mut().zip(position).for_each(|(sum, &g)| *sum += f64::from(g));
            }
            let norm = values.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
            if self.seen.len() <= row {
                self.seen.resize(row + 1, 0);
            }
            self.received.push(Received { row, before: self.seen[row], sum, norm });
            self.seen[row] += 1;
        }
    }
}

impl Door for Curious {
    fn request(&mut self, request: &mut Request) {
        match request {
            Request::Forward(message) if message.round.is_training() => {
                self.asked = Some((message.round, message.rows.clone()));
            }
            Request::Backward(Backward { round, gradient, learning_rate }) => {
                if let Some((_, rows)) = self.asked.take_if(|(asked, _)| asked == round) {
                    self.keep(&rows, gradient);
                }
                if let Some(boost) = self.boost {
                    *learning_rate *= boost;
                }
            }
            _ => {}
        }
    }
}
