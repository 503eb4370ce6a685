//! The gate of a run with `[release]`: the same method without the columns of the releases, and the choice between both models
//! on the validation rows.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fet_backends::Backend;
use fet_core::experiment::Experiment;
use fet_eval::paired::{self, TestedRun};
use fet_eval::records::GateRecord;
use fet_eval::{ChaCha8Rng, SeedableRng};
use fet_federation::report;
use fet_federation::trainer::{RunError, Trainer};

use super::begin::alone;
use crate::parties::network::Elsewhere;

/// Number of standard errors of a 95 % interval on each side.
const ENDS: f64 = 1.96;

/// Trains the method of a finished run without the columns of its releases. Returns the trainer of the better model, which
/// notes the choice; `None` if `stop` was set.
pub(super) fn better(
    released: Trainer,
    experiment: &Experiment,
    (backend, folder): (&Backend, &Path),
    elsewhere: Option<&Elsewhere>,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Trainer>> {
    fet_io::note!("training without the releases, to see if they help (`train.gate`)");
    let mut own = alone(experiment, backend, folder, elsewhere)?;
    while !own.is_done() {
        match own.epoch(&mut |_| !stop.load(Ordering::Relaxed)) {
            Ok(_) => {}
            Err(RunError::Interrupted { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    let gate = compare(&released, &own, experiment);
    let releases = released.one_time_releases().clone().gated(gate);
    let mut chosen = if gate.used { released } else { own };
    chosen.set_one_time_releases(releases);
    Ok(Some(chosen))
}

/// Compares both models on the validation rows.
fn compare(released: &Trainer, own: &Trainer, experiment: &Experiment) -> GateRecord {
    let metric = released.metric();
    let of = |trainer: &Trainer| {
        let [validation, _] = trainer.evaluated()?;
        Some(TestedRun {
            seed: experiment.seed,
            fold: 0,
            task: trainer.objective().scored(),
            rows: validation.rows.iter().map(|&row| row as u64).collect(),
            truth: validation.truth,
            output: validation.values,
            fitted: trainer.split().train.len(),
        })
    };
    let best = |trainer: &Trainer| report::best(trainer).map_or(f64::NAN, |best| best.validation);
    // A model without a finite metric is worse than any other.
    let (with, without) = match (of(released), of(own)) {
        (Some(with), Some(without)) => ([with], [without]),
        (with, _) => {
            let (used, error) = (with.is_some(), f64::INFINITY);
            return GateRecord { used, alone: best(own), released: best(released), gain: f64::NAN, error };
        }
    };
    let settings = paired::bounded_settings(&with, metric);
    let rng = &mut ChaCha8Rng::seed_from_u64(experiment.seed);
    // Rows that are too few for a standard error show no gain.
    let (gain, error) = match paired::difference(&with, &without, metric, settings, rng) {
        Ok(found) => {
            let width = found.over_rows.upper - found.over_rows.lower;
            (metric.direction().gain(found.estimate, 0.0), width / (2.0 * ENDS))
        }
        Err(_) => (metric.direction().gain(best(released), best(own)), f64::INFINITY),
    };
    GateRecord { used: gain > error, alone: best(own), released: best(released), gain, error }
}
