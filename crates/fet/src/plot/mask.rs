//! `mask.svg`: a secondary's dynamic mask on the neighbours of four test rows (paper, figure 3).
//!
//! A circle is a neighbour at its key; its area is the weight from the mask alone. The cross is the primary's
//! key, which the mask does not use. For keys with more than two dimensions the chart shows the first two.

use anyhow::Context;
use burn::tensor::{Tensor, TensorData};
use fet_chart::{Bubble, Panel, Picture, Size, Titles};
use fet_components::model::{DynamicMask, Init};
use fet_core::data::Keys;
use fet_core::linker::{Linker, link};
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::rng::{Purpose, stream};
use fet_core::trainable::{Learner, Trainable};
use fet_federation::prepare::{PreparedParty, for_model};
use fet_federation::schedule;

use super::run::PlottedRun;
use crate::experiment_file::data_folders;
use fet_io::input::input;

/// Number of rows in the chart.
const ROWS: usize = 4;

/// Radius of a neighbour with the average weight.
const EVEN: f64 = 5.0;

const SIZE: Size = Size { width: 440.0, height: 400.0, names: 0.0 };

fn parameters(run: &PlottedRun, party: usize) -> Parameters {
    run.model.part(&format!("party{party}.mask."))
}

/// Returns the first secondary with a dynamic mask, from 1.
pub(super) fn party(run: &PlottedRun) -> Option<usize> {
    (1..=run.report.secondaries).find(|&party| !parameters(run, party).segments().is_empty())
}

/// Test row: the primary's key, and the keys and weights of its neighbours.
struct Row {
    row: usize,
    own: (f64, f64),
    neighbours: Vec<((f64, f64), f64)>,
}

/// Returns the test rows, and the titles of the axes for their keys.
fn rows(run: &PlottedRun, party: usize) -> anyhow::Result<(Vec<Row>, [&'static str; 2])> {
    let experiment = &run.experiment;
    let folders = data_folders(experiment);
    let data = fet_federation::data::read(experiment, &folders)
        .map_err(|error| input(format!("{}: {error}", run.name)))?;
    let (primary, secondaries) = fet_federation::data::divided(experiment, data)?;
    let split = schedule::split(&primary.parts, primary.table.rows(), experiment.seed)?;
    let rows: Vec<usize> = split.test.iter().copied().take(ROWS).collect();
    let table = secondaries.into_iter().nth(party - 1).context("there is no such party in the data")?;
    let prepared = PreparedParty::of_all(table, primary.standardise, experiment.train.key_inputs)?;
    // The primary linked by its keys, or by keys derived from its columns.
    let asked = run.preparing.apply(primary.table)?.raw_keys;
    let linker: Box<dyn Linker> = experiment.linker.build(&())?;
    // The run linked all rows. If the links of a row do not depend on other rows, linking the shown rows is
    // enough.
    let linked = if linker.about().independent { rows.clone() } else { (0..asked.rows()).collect() };
    let queries = asked.select_rows(&linked);
    let places: Vec<usize> = rows.iter().filter_map(|row| linked.iter().position(|r| r == row)).collect();
    let index = fet_federation::federation::PartyIndex::new(party - 1);
    let seed = fet_federation::secondary::linking_seed(experiment.seed, index);
    let links = link(linker.as_ref(), &queries, &prepared.raw_keys, seed, &|_| ())?;
    let (positions, columns) = (links.neighbours(), prepared.scaled.keys.columns());
    let scaled: Vec<f32> = places
        .iter()
        .flat_map(|&place| links.row(place))
        .flat_map(|&record| prepared.scaled.keys.row(record as usize))
        .copied()
        .collect();
    let masks = evaluate(&parameters(run, party), scaled, [rows.len(), positions * columns])?;
    // Draw a text key at its position as a model input.
    let model = |keys| for_model(keys).context("a party's own keys are not sealed");
    let (own, others) = (model(&queries)?, model(&prepared.raw_keys)?);
    let flat = |key: &[f64]| (key[0], key.get(1).copied().unwrap_or(0.0));
    let of = |((&row, &place), masks): ((&usize, &usize), &[f32])| {
        let weights = softmax(masks);
        let keys = links.row(place).iter().map(|&record| flat(others.row(record as usize)));
        Row { row, own: flat(own.row(place)), neighbours: keys.zip(weights).collect() }
    };
    let axes = match (&queries, own.columns()) {
        (Keys::Text(_), _) => ["first column of the text's sketch", "second column of the text's sketch"],
        (_, 1) => ["key, in the data's unit", "(the key has one column)"],
        _ => ["first column of the key, in the data's unit", "second column of the key, in the data's unit"],
    };
    Ok((rows.iter().zip(&places).zip(masks.chunks(positions)).map(of).collect(), axes))
}

/// Returns the mask of each row, [rows, K].
fn evaluate(parameters: &Parameters, keys: Vec<f32>, shape: [usize; 2]) -> anyhow::Result<Vec<f32>> {
    let device = fet_backends::open("flex")?.device;
    let tracked = device.clone().autodiff();
    let positions = parameters.get("output.bias").map_or(0, <[f32]>::len);
    let columns = shape[1].checked_div(positions).unwrap_or(0);
    let mut init = Init::new(stream(0, 0, Purpose::Weights, 0), &tracked);
    let mut mask =
        Trainable::new(DynamicMask::new(&mut init, columns, positions), OptimizerSettings::lamb(), &tracked);
    mask.load(parameters)?;
    let keys = Tensor::from_data(TensorData::new(keys, shape), &device);
    Ok(host(mask.untracked().forward(keys)))
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let raw: Vec<f64> = logits.iter().map(|&x| f64::from(x - largest).exp()).collect();
    let total: f64 = raw.iter().sum();
    raw.into_iter().map(|x| x / total).collect()
}

pub(super) fn draw(run: &PlottedRun, party: usize) -> anyhow::Result<String> {
    let (rows, [x, y]) = rows(run, party)?;
    let panel = |row: &Row| {
        let even = 1.0 / row.neighbours.len() as f64;
        let bubble = |&(at, weight): &((f64, f64), f64)| Bubble {
            at,
            radius: (EVEN * (weight / even).sqrt()).clamp(1.0, 40.0),
            title: format!("weight {weight:.3}"),
        };
        let bubbles: Vec<Bubble> = row.neighbours.iter().map(bubble).collect();
        let title = format!("Row {}", row.row);
        let titles = Titles { chart: &title, x, y };
        let chart = fet_chart::bubbles(SIZE, titles, &bubbles, (row.own, "the primary's key"));
        Panel { title, size: SIZE, chart }
    };
    let title = format!("Weights of the dynamic mask of party {party}");
    let picture = Picture {
        panels: rows.iter().map(panel).collect(),
        columns: 2,
        legend: Vec::new(),
        caption: format!(
            "{title} in the run {}. A circle is a neighbour at its key; its area is its weight. The cross is the \
             primary's key, which the mask does not use.",
            run.name
        ),
        title,
    };
    Ok(picture.svg())
}

#[cfg(test)]
mod tests {
    use super::softmax;

    #[test]
    fn weights_sum_to_one() {
        let weights = softmax(&[1000.0, 1000.0, -1000.0]);
        assert_eq!(weights, [0.5, 0.5, 0.0]);
    }
}
