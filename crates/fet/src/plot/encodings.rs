//! `encodings.svg`: the distance of each party's positional encoding from the primary's, one series per run
//! (paper, figure 4). Compare runs with and without `pe_average_every` to see the effect of averaging.

use burn::tensor::{Device, Tensor, TensorData};
use fet_chart::{Mark, Panel, Picture, Series, Size, Titles};
use fet_components::model::{Embedding, FourierEncoding, Init};
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::rng::{Purpose, stream};
use fet_core::trainable::{Learner, Trainable};
use rand_distr::{Distribution, StandardNormal};

use super::run::PlottedRun;

/// Number of keys for the comparison of encodings.
const KEYS: usize = 500;

const SIZE: Size = Size { width: 760.0, height: 400.0, names: 0.0 };

/// Numbers of parties, from 1, with their distances from the primary.
type Distances = Vec<(usize, f64)>;

/// Returns the distance for each secondary that left a model.
///
/// The distance is the root mean square, over keys, of the distance between the secondary's and the primary's
/// encoding of a key. Keys are standard normal, like standardised keys.
fn distances(run: &PlottedRun, device: &Device) -> anyhow::Result<Distances> {
    let Some(primary) = encoding(run, "primary") else { return Ok(Vec::new()) };
    let own = evaluate(&primary, device)?;
    let mut found = Vec::new();
    for party in 1..=run.report.secondaries {
        let Some(parameters) = encoding(run, &format!("party{party}")) else { continue };
        let other = evaluate(&parameters, device)?;
        let squares: f64 = own.iter().zip(&other).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        found.push((party, (squares / KEYS as f64).sqrt()));
    }
    Ok(found)
}

/// Returns the parameters of a party's positional encoding, if the party has one.
fn encoding(run: &PlottedRun, party: &str) -> Option<Parameters> {
    let parameters = run.model.part(&format!("{party}.{}", Embedding::POSITION));
    (!parameters.segments().is_empty()).then_some(parameters)
}

/// Returns the encoding of the keys, [KEYS, H].
fn evaluate(parameters: &Parameters, device: &Device) -> anyhow::Result<Vec<f32>> {
    let shape = parameters.segments().iter().find(|segment| segment.name == "frequencies");
    let shape = shape.map(|segment| segment.shape.clone()).unwrap_or_default();
    let &[columns, half] = shape.as_slice() else {
        anyhow::bail!("the model holds a positional encoding of another form");
    };
    let tracked = device.clone().autodiff();
    let mut init = Init::new(stream(0, 0, Purpose::Weights, 0), &tracked);
    let blank = FourierEncoding::new(&mut init, columns, 2 * half, 1.0);
    let mut encoding = Trainable::new(blank, OptimizerSettings::lamb(), &tracked);
    encoding.load(parameters)?;
    let mut rng = stream(0, 0, Purpose::KeyNoise, 0);
    let keys: Vec<f32> = (0..KEYS * columns).map(|_| StandardNormal.sample(&mut rng)).collect();
    let keys = Tensor::from_data(TensorData::new(keys, [KEYS, columns]), device);
    Ok(host(encoding.untracked().forward(keys)))
}

/// Draws the chart; returns `None` if no run has positional encodings.
pub(super) fn draw(runs: &[PlottedRun]) -> anyhow::Result<Option<String>> {
    let device = fet_backends::open("flex")?.device;
    let all = runs.iter().map(|run| distances(run, &device)).collect::<Result<Vec<_>, _>>()?;
    if all.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let most = runs.iter().map(|run| run.report.secondaries).max().unwrap_or(0);
    let ticks: Vec<String> = (1..=most).map(|party| party.to_string()).collect();
    let series = |(number, (run, distances)): (usize, (&PlottedRun, &Distances))| {
        let mark = |&(party, mean): &(usize, f64)| {
            let title = format!("{}, party {party}: {mean:.3}", run.name);
            Mark { place: party - 1, mean, title, ..Mark::default() }
        };
        let every = run.report.experiment["method"]["pe_average_every"].as_u64().unwrap_or(0);
        let averaged = if every > 0 { format!("averaged every {every}") } else { "never averaged".into() };
        let name = format!("{} ({averaged})", run.name);
        Series { number, name, marks: distances.iter().map(mark).collect(), ..Series::default() }
    };
    let series: Vec<Series> = runs.iter().zip(&all).enumerate().map(series).collect();
    let title = "Positional encodings: distance from the primary's".to_string();
    let titles = Titles { chart: &title, x: "secondary party", y: "root mean square distance" };
    let chart = fet_chart::amounts(SIZE, titles, &ticks, &series);
    let picture = Picture {
        title: title.clone(),
        panels: vec![Panel { title, size: SIZE, chart }],
        columns: 1,
        legend: series.into_iter().map(|series| (series.number, series.name)).collect(),
        caption: String::new(),
    };
    Ok(Some(picture.svg()))
}
