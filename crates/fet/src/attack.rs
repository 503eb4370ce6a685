//! `fet attack`: how well a primary that has trained an experiment reconstructs a secondary's features from what it
//! sees.
//!
//! The attacker knows the features of the records linked to the training rows (as if they had leaked), fits a decoder
//! from what the primary sees of those rows, and predicts the features of the records linked to the test rows. The
//! decoder is a ridge regression on what the primary sees and on random tanh features of it, with the penalty chosen on
//! the validation rows: fast and reproducible. It is one attack: a low error shows a leak, a high one proves nothing.

mod ridge;

use std::sync::atomic::AtomicBool;

use fet_backends::Backend;
use fet_core::data::{DatasetContext, Matrix};
use fet_core::experiment::Experiment;
use fet_core::parameters::host;
use fet_train::prepare::divide;
use fet_train::schedule::Split;
use fet_train::simulation::{Simulation, Watched};
use fet_train::trainer::Trainer;
use serde_json::{Value, json};

use crate::experiment_file::data_folder;
use crate::run;
use ridge::Decoder;

/// Trains `experiment` and attacks its first secondary.
pub fn attack(experiment: &Experiment, stop: &AtomicBool) -> anyhow::Result<Value> {
    let backend = fet_backends::open(&experiment.device).map_err(|e| run::InputError(e.to_string()))?;
    let (mut trainer, victim) = prepare(experiment, &backend)?;
    while !trainer.is_done() {
        trainer.epoch(&mut |_| !stop.load(std::sync::atomic::Ordering::Relaxed))?;
    }
    let split = trainer.split().clone();
    let rows: Vec<usize> = (0..split.train.len() + split.validation.len() + split.test.len()).collect();
    let truth = victim.look().nearest_features(&rows)?;
    let own = trainer.own_columns(&rows);
    let seen = seen(&mut trainer, &rows)?;
    let metric = trainer.objective().metric().name.as_str();
    let best = trainer.progress().best.and_then(|best| trainer.progress().epochs[best].test);
    let spent = trainer.spent();
    Ok(json!({
        "aggregator": experiment.aggregator.kind(),
        "privacy": experiment.privacy.kind(),
        "epsilon": spent.as_ref().and_then(|spent| spent.epsilon),
        "noise": spent.as_ref().and_then(|spent| spent.guarantee.as_ref()).map(|guarantee| guarantee.noise),
        metric: best,
        "error": error(&seen, &truth, &split),
        "error_from_own_columns": error(&own, &truth, &split),
        "error_from_both": error(&beside(&seen, &own), &truth, &split),
    }))
}

/// A trainer, and the attacked party: the first, whose features are read as the ground truth.
fn prepare(experiment: &Experiment, backend: &Backend) -> anyhow::Result<(Trainer, Watched)> {
    let input = |error: &dyn std::fmt::Display| run::InputError(error.to_string());
    let machine = run::machine(backend);
    // The attack asks for rows besides the schedule, which no party of a real run lets pass.
    let mut experiment = experiment.clone();
    experiment.policy.probes = true;
    let experiment = &experiment;
    let simulation = Simulation::new(experiment, &machine);
    let folder = data_folder();
    let context = DatasetContext { folder: &folder, seed: experiment.seed };
    let data = experiment.data.build(&context).map_err(|e| input(&e))?.load().map_err(|e| input(&e))?;
    let (primary, tables) = divide(data);
    let parties = simulation.secondaries(tables).map_err(|e| input(&e))?;
    let parties: Vec<Watched> = parties.into_iter().map(Watched::new).collect();
    let Some(victim) = parties.first().cloned() else {
        let message = format!("the method \"{}\" has no secondaries to attack", experiment.method.kind());
        return Err(run::InputError(message).into());
    };
    let parties = parties.into_iter().map(|party| simulation.wired(party)).collect();
    let trainer = simulation.trainer(primary, parties).map_err(|e| input(&e))?;
    backend.share(trainer.federation().len());
    Ok((trainer, victim))
}

/// What the primary sees of each row: every party's part, or their sum.
fn seen(trainer: &mut Trainer, rows: &[usize]) -> anyhow::Result<Matrix<f32>> {
    let mut values: Vec<Vec<f32>> = vec![Vec::new(); rows.len()];
    for chunk in rows.chunks(256) {
        for part in trainer.seen(chunk)? {
            let width = part.dims()[1] * part.dims()[2];
            for (row, block) in chunk.iter().zip(host(part).chunks(width)) {
                values[*row].extend_from_slice(block);
            }
        }
    }
    Ok(Matrix::new(values[0].len(), values.concat()))
}

fn beside(left: &Matrix<f32>, right: &Matrix<f32>) -> Matrix<f32> {
    let rows = (0..left.rows()).map(|row| [left.row(row), right.row(row)].concat());
    Matrix::new(left.columns() + right.columns(), rows.collect::<Vec<_>>().concat())
}

/// The squared error of the predictions on test rows relative to predicting the mean, median over features: 0 is a full
/// reconstruction, 1 is none.
fn error(inputs: &Matrix<f32>, truth: &Matrix<f32>, split: &Split) -> f64 {
    let fit = |rows: &[usize]| (inputs.select_rows(rows), truth.select_rows(rows));
    let (train, validation, test) = (fit(&split.train), fit(&split.validation), fit(&split.test));
    let decoder = Decoder::fit((&train.0, &train.1), (&validation.0, &validation.1));
    decoder.error(&test.0, &test.1)
}
