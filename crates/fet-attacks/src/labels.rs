//! Attacks on labels by gradients: a secondary receives a gradient for each row of a batch, and the gradient
//! depends on the label.

mod clustering;
mod completion;
mod cosine;
mod neighbour;
mod norm;
mod sign;

pub use clustering::ClusteringSettings;
pub use completion::CompletionSettings;
pub use cosine::CosineSettings;
pub use neighbour::NeighbourSettings;
pub use norm::NormSettings;
pub use sign::SignSettings;

use fet_core::attack::{About, AttackEnvironment, AttackError, Attacker, Setting, Target, Trained};
use fet_core::data::{Matrix, Task};
use fet_core::registry::Violation;
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use rand::seq::SliceRandom;

use crate::tools::clusters::unit;
use crate::tools::gradients::Received;
use crate::tools::scaling;

/// Returns the description of an attack of a secondary on labels.
fn after_labels(party: usize) -> About {
    About { attacker: Attacker::Secondary, target: Target::Labels, party }
}

/// Refuses regressions.
fn needs_classes(setting: &Setting) -> Result<(), Violation> {
    if setting.task == Task::Regression {
        let rule = "must be \"gradient-sign\" or an attack on features: this attack needs classes, but labels are numbers";
        return Err(Violation::new("kind", rule, "another"));
    }
    Ok(())
}

/// Returns the class of each row.
fn classes(environment: &dyn AttackEnvironment, rows: impl Iterator<Item = usize>) -> Vec<usize> {
    let labels = &environment.data().labels;
    rows.map(|row| labels[row] as usize).collect()
}

/// Returns the direction of each row's first gradients: the normalised sum of up to `epochs` unit gradients.
fn directions(received: &[Received], epochs: usize) -> (Vec<usize>, Vec<Vec<f64>>) {
    let mut rows: Vec<usize> = received.iter().map(|one| one.row).collect();
    rows.sort_unstable();
    rows.dedup();
    let width = received.first().map_or(0, |one| one.sum.len());
    let mut sums = vec![vec![0.0; width]; rows.len()];
    for one in received.iter().filter(|one| one.before < epochs) {
        if let Ok(at) = rows.binary_search(&one.row) {
            sums[at].iter_mut().zip(unit(one.sum.clone())).for_each(|(sum, x)| *sum += x);
        }
    }
    (rows, sums.into_iter().map(unit).collect())
}

/// Returns the attacker's own data for each row, as directions of standardised columns: the features of the
/// nearest record, without and with its keys. They give the baseline of an attack without gradients.
fn own_directions(
    trained: &dyn Trained,
    party: usize,
    rows: &[usize],
) -> Result<[Vec<Vec<f64>>; 2], AttackError> {
    let features = standardised(&trained.features(party, rows)?);
    let keys = standardised(&trained.keys(party, rows)?);
    let both = features.iter().zip(&keys).map(|(features, keys)| unit([features.as_slice(), keys].concat()));
    let both = both.collect();
    Ok([features.into_iter().map(unit).collect(), both])
}

fn standardised(table: &Matrix<f32>) -> Vec<Vec<f64>> {
    let scaling = scaling(table);
    let line = |row: usize| {
        let values = table.row(row).iter().zip(&scaling);
        values.map(|(&x, (mean, deviation))| (f64::from(x) - mean) / deviation.max(1e-9)).collect()
    };
    (0..table.rows()).map(line).collect()
}

/// Returns the random stream of an attack, for its shuffles and starts.
fn chance(environment: &dyn AttackEnvironment) -> ChaCha8Rng {
    stream(environment.setting().seed, 0, Purpose::Attack, 0)
}

/// Draws `each` rows of every class. Returns the places of these rows among `labels`, and the places of the
/// other rows.
fn known(labels: &[usize], each: usize, rng: &mut ChaCha8Rng) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.shuffle(rng);
    let mut counts = vec![0; labels.iter().max().map_or(0, |most| most + 1)];
    order.into_iter().partition(|&place| {
        counts[labels[place]] += 1;
        counts[labels[place]] <= each
    })
}
