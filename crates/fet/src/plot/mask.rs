//! `mask.svg`: the first secondary's dynamic mask on the neighbours of four test rows (paper, figure 3).
//!
//! A circle is a neighbour at its key; its area is the weight from the mask alone. The cross is the primary's key,
//! which the mask never sees. For keys with more than two dimensions the first two are shown.

use anyhow::Context;
use burn::tensor::{Tensor, TensorData};
use fet_core::data::DatasetContext;
use fet_core::linker::{Linker, link};
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::rng::{Purpose, stream};
use fet_core::trainable::{Learner, Trainable};
use fet_train::model::{DynamicMask, Init};
use fet_train::prepare::{PreparedParty, divide, for_model};
use fet_train::schedule::Split;
use plotters::prelude::*;

use super::Run;
use super::chart::{axes, range, svg};
use crate::experiment_file::data_folder;

/// How many rows are shown.
const ROWS: usize = 4;

fn parameters(run: &Run) -> Parameters {
    run.model.part("party1.mask.")
}

/// Whether the run has a dynamic mask.
pub(super) fn has_mask(run: &Run) -> bool {
    !parameters(run).segments().is_empty()
}

/// A test row: the primary's key, and keys and weights of its neighbours.
struct Panel {
    row: usize,
    own: (f64, f64),
    neighbours: Vec<((f64, f64), f64)>,
}

fn panels(run: &Run) -> anyhow::Result<Vec<Panel>> {
    let experiment = &run.experiment;
    let folder = data_folder();
    let context = DatasetContext { folder: &folder, seed: experiment.seed };
    let (primary, secondaries) = divide(experiment.data.build(&context)?.load()?);
    let split = Split::new(primary.table.rows(), experiment.seed)?;
    let rows: Vec<usize> = split.test.iter().copied().take(ROWS).collect();
    let table = secondaries.into_iter().next().context("the run has no secondary party")?;
    let party = PreparedParty::of_all(table, primary.standardise);
    let linker: Box<dyn Linker> = experiment.linker.build(&())?;
    let queries = primary.table.keys.select_rows(&rows);
    let seed = fet_train::secondary::linking_seed(experiment.seed, 1);
    let links = link(linker.as_ref(), &queries, &party.raw_keys, seed, &|_| ())?;
    let (positions, columns) = (links.neighbours(), party.scaled.keys.columns());
    let scaled: Vec<f32> = (0..rows.len())
        .flat_map(|query| links.row(query))
        .flat_map(|&record| party.scaled.keys.row(record as usize))
        .copied()
        .collect();
    let masks = evaluate(run, scaled, [rows.len(), positions * columns])?;
    // A text key is drawn where the model sees it.
    let (own, others) = (for_model(&queries), for_model(&party.raw_keys));
    let flat = |key: &[f64]| (key[0], key.get(1).copied().unwrap_or(0.0));
    let panel = |(index, &row): (usize, &usize)| {
        let weights = softmax(&masks[index * positions..(index + 1) * positions]);
        let keys = links.row(index).iter().map(|&record| flat(others.row(record as usize)));
        Panel { row, own: flat(own.row(index)), neighbours: keys.zip(weights).collect() }
    };
    Ok(rows.iter().enumerate().map(panel).collect())
}

/// The mask of each row, [rows, K].
fn evaluate(run: &Run, keys: Vec<f32>, shape: [usize; 2]) -> anyhow::Result<Vec<f32>> {
    let parameters = parameters(run);
    let device = fet_backends::open("flex")?.device;
    let tracked = device.clone().autodiff();
    let positions = parameters.get("output.bias").map_or(0, <[f32]>::len);
    let columns = shape[1].checked_div(positions).unwrap_or(0);
    let mut init = Init::new(stream(0, 0, Purpose::Weights, 0), &tracked);
    let mut mask =
        Trainable::new(DynamicMask::new(&mut init, columns, positions), OptimizerSettings::lamb(), &tracked);
    mask.load(&parameters)?;
    let keys = Tensor::from_data(TensorData::new(keys, shape), &device);
    Ok(host(mask.untracked().forward(keys)))
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let raw: Vec<f64> = logits.iter().map(|&x| f64::from(x - largest).exp()).collect();
    let total: f64 = raw.iter().sum();
    raw.into_iter().map(|x| x / total).collect()
}

pub(super) fn draw(run: &Run) -> anyhow::Result<String> {
    let panels = panels(run)?;
    svg((900, 900), |canvas| {
        for (area, panel) in canvas.split_evenly((2, 2)).iter().zip(&panels) {
            let places = || panel.neighbours.iter().map(|(at, _)| *at).chain([panel.own]);
            let (x, y) = (range(places().map(|at| at.0)), range(places().map(|at| at.1)));
            let title = format!("Row {}: weights of the mask", panel.row);
            let mut chart = axes(area, &title, ("key, first column", x), ("key, second column", y))?;
            let even = 1.0 / panel.neighbours.len() as f64;
            chart.draw_series(panel.neighbours.iter().map(|(at, weight)| {
                // A neighbour that weighs as much as the average has a radius of 5.
                let radius = (5.0 * (weight / even).sqrt()).clamp(1.0, 40.0);
                Circle::new(*at, radius.round() as i32, RGBColor(0, 114, 178).stroke_width(1))
            }))?;
            chart.draw_series([Cross::new(panel.own, 7, BLACK.stroke_width(3))])?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::softmax;

    #[test]
    fn weights_add_up() {
        let weights = softmax(&[1000.0, 1000.0, -1000.0]);
        assert_eq!(weights, [0.5, 0.5, 0.0]);
    }
}
