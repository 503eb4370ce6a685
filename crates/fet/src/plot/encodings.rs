//! `encodings.svg`: the distance of each party's positional encoding from the primary's, one series per run (paper,
//! figure 4). Compare runs with and without `pe_average_every` to see the effect of averaging.

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::rng::{Purpose, stream};
use fet_core::trainable::{Learner, Trainable};
use fet_train::model::{Embedding, FourierEncoding, Init};
use rand_distr::{Distribution, StandardNormal};

use super::Run;
use super::chart::{axes, legend, range, series, svg, with_legend};

/// The number of keys on which encodings are compared.
const KEYS: usize = 500;

/// For each secondary its number and the root mean square, over keys, of the distance between its encoding of a key
/// and the primary's. Keys are standard normal, like standardised keys.
fn distances(run: &Run, device: &Device) -> anyhow::Result<Vec<(f64, f64)>> {
    let Some(primary) = encoding(run, "primary") else { return Ok(Vec::new()) };
    let own = evaluate(&primary, device)?;
    let mut found = Vec::new();
    for party in 1.. {
        let Some(parameters) = encoding(run, &format!("party{party}")) else { break };
        let other = evaluate(&parameters, device)?;
        let squares: f64 = own.iter().zip(&other).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        found.push((f64::from(party), (squares / KEYS as f64).sqrt()));
    }
    Ok(found)
}

/// The parameters of a party's positional encoding, if it has one.
fn encoding(run: &Run, party: &str) -> Option<Parameters> {
    let parameters = run.model.part(&format!("{party}.{}", Embedding::POSITION));
    (!parameters.segments().is_empty()).then_some(parameters)
}

/// The encoding of the keys, [KEYS, H].
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

/// Nothing if no run has positional encodings.
pub(super) fn draw(runs: &[Run]) -> anyhow::Result<Option<String>> {
    let device = fet_backends::open("flex")?.device;
    let all = runs.iter().map(|run| distances(run, &device)).collect::<Result<Vec<_>, _>>()?;
    if all.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let points = || all.iter().flatten();
    let x = range(points().map(|point| point.0));
    let y = with_legend(range(points().map(|point| point.1).chain([0.0])));
    svg((800, 460), |canvas| {
        let title = "Positional encodings: distance from the primary's";
        let mut chart = axes(canvas, title, ("secondary party", x), ("root mean square distance", y))?;
        for (index, (run, points)) in runs.iter().zip(&all).enumerate() {
            let every = run.report.experiment["method"]["pe_average_every"].as_u64().unwrap_or(0);
            let averaged =
                if every > 0 { format!("averaged every {every}") } else { "never averaged".into() };
            series(&mut chart, index, &format!("{} ({averaged})", run.name), points, false)?;
        }
        legend(&mut chart)
    })
    .map(Some)
}
