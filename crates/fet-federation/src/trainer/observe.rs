//! Observers of a run from the primary's side, for measuring attacks. They do not change the run.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use fet_core::attack::View;
use fet_core::data::Matrix;
use fet_core::message::{Block, Round};
use fet_core::parameters::host;

use super::Trainer;

impl Trainer {
    /// Shows `view` all messages that arrive from now on, as an attacking primary would see them.
    pub fn observe(&mut self, view: Arc<Mutex<dyn View>>) {
        self.view = Some(view);
    }

    /// Shows the observer what arrived for these rows: every party's part, or their sum. The parts are
    /// computed only if there is an observer.
    pub(super) fn show_parts(
        &self,
        round: Round,
        rows: &[usize],
        active: &[usize],
        parts: impl FnOnce() -> Vec<Block>,
    ) {
        self.show(|view| view.received(round, rows, active, &parts()));
    }

    /// Shows the observer the model's outputs for rows of an evaluation.
    pub(super) fn show_outputs(&self, round: Round, rows: &[usize], outputs: &Tensor<2>) {
        self.show(|view| view.predicted(round, rows, &Matrix::new(outputs.dims()[1], host(outputs.clone()))));
    }

    fn show(&self, tell: impl FnOnce(&mut dyn View)) {
        if let Some(view) = &self.view {
            tell(&mut *view.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
