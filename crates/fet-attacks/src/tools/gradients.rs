//! Gradients that a secondary receives, row by row.

use std::sync::{Arc, Mutex, PoisonError};

use fet_core::attack::{AttackEnvironment, AttackError, MessageHook, Run, Trained};
use fet_core::message::{Backward, Block, Request, Round};

/// Gradient of one row in one step.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Row of the gradient.
    pub(crate) row: usize,
    /// Number of earlier gradients of the row.
    pub(crate) before: usize,
    /// Sum of the gradient over positions.
    pub(crate) sum: Vec<f64>,
    /// Norm of the whole gradient.
    pub(crate) norm: f64,
}

/// Malicious-party hook that records the gradients a party receives.
#[derive(Debug, Default)]
pub(crate) struct GradientRecorder {
    /// Factor on the party's learning rate: above 1 to make the primary's model rely on the party (active
    /// model completion).
    boost: Option<f64>,
    asked: Option<(Round, Vec<u32>)>,
    seen: Vec<usize>,
    /// Gradients in the order of arrival.
    received: Vec<Received>,
}

impl GradientRecorder {
    /// Returns a hook that also multiplies the party's learning rate by `boost`.
    pub(crate) fn hurried(boost: f64) -> Self {
        Self { boost: (boost != 1.0).then_some(boost), ..Self::default() }
    }

    /// Trains a run in which `party` records its gradients.
    pub(crate) fn train(
        self,
        environment: &mut dyn AttackEnvironment,
        party: usize,
    ) -> Result<(Vec<Received>, Box<dyn Trained>), AttackError> {
        let hook = Arc::new(Mutex::new(self));
        let trained = environment.train(Run { hook: Some((party, hook.clone())), ..Run::default() })?;
        let received = std::mem::take(&mut hook.lock().unwrap_or_else(PoisonError::into_inner).received);
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

impl MessageHook for GradientRecorder {
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
