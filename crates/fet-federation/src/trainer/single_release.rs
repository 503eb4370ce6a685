//! The single release of every row in a run whose secondaries are frozen.

use burn::tensor::{Device, Int, Tensor, TensorData};
use fet_core::aggregator::Aggregation;
use fet_core::method::Memory;
use fet_core::parameters::host;
use fet_core::privacy::Tally;

use super::core::{BatchRequest, PrimaryCore};
use super::error::RunError;
use super::links::RowLinks;

/// Maximum number of a release's values in a checkpoint, which is written after each epoch: 256 MiB.
const MOST_SAVED: usize = 1 << 26;

/// The release of every row, if each row is released once in the whole run.
#[derive(Default)]
pub(crate) struct SingleRelease {
    /// Memory of every row; `None` before the release.
    memory: Option<Memory>,
}

impl SingleRelease {
    /// Makes the release of an earlier session, so that it is not requested again.
    pub(crate) fn restored(shape: [usize; 3], values: Vec<f32>, available: usize, device: &Device) -> Self {
        let tensor = Tensor::from_data(TensorData::new(values, shape), device);
        Self { memory: Some(Memory { tensor, available, similarities: Vec::new() }) }
    }

    /// Returns true if the parties have released all rows.
    pub(super) fn is_received(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns the shape of the release, its values and the number of real neighbours, for a checkpoint.
    pub(crate) fn saved(&self) -> Option<([usize; 3], Vec<f32>, usize)> {
        let Memory { tensor, available, .. } = self.memory.as_ref()?;
        let shape = tensor.dims();
        (shape.iter().product::<usize>() <= MOST_SAVED).then(|| (shape, host(tensor.clone()), *available))
    }

    /// Returns the memory of a batch. The first call releases all rows, batch by batch.
    pub(super) fn memory(
        &mut self,
        core: &mut PrimaryCore,
        links: &RowLinks,
        rows: &[usize],
    ) -> Result<(Memory, Aggregation), RunError> {
        let all = match self.memory.take() {
            Some(all) => all,
            None => release(core, links)?,
        };
        let indices: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let indices = Tensor::<1, Int>::from_data(TensorData::from(indices.as_slice()), &all.tensor.device());
        let tensor = all.tensor.clone().select(0, indices);
        let [_, positions, width] = tensor.dims();
        let memory = Memory { tensor, available: all.available, similarities: Vec::new() };
        self.memory = Some(all);
        let active = core.federation.active();
        let shapes = vec![[rows.len(), positions, width]; active.len()];
        let parties = core.federation.len();
        Ok((memory, Aggregation { parties, active, shapes, similarities: Vec::new() }))
    }
}

/// Releases every row, batch by batch. A resumed run requests again the batches that it had received. From the
/// same parties it gets the same values, which count once; if a party dropped out in between, the releases are
/// another pass.
fn release(core: &mut PrimaryCore, links: &RowLinks) -> Result<Memory, RunError> {
    let again = core.releases.requests > 0;
    let before = core.federation.active().len();
    let same = Tally::of_all(&core.releases.tallies).iter().all(|(active, _)| active == before);
    let tallies = core.releases.tallies.clone();
    let traffic = core.federation.traffic_by_party().to_vec();
    let mut portions = Vec::new();
    let mut available = 0;
    for (round, rows) in core.schedule.portions() {
        let active = core.federation.active();
        let (memory, _) = core.memory(BatchRequest { round, rows: &rows, active: &active, links })?;
        available = memory.available.max(available);
        portions.push(memory.tensor);
    }
    core.releases.requests = 1;
    if again && same && core.federation.active().len() == before {
        core.federation.restore_traffic(traffic);
        core.releases.tallies = tallies;
    }
    Ok(Memory { tensor: Tensor::cat(portions, 0), available, similarities: Vec::new() })
}
