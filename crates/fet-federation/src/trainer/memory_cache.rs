//! Cache of the secondaries' aggregated representations of new records, by the records' keys.

use std::collections::HashMap;
use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::data::Keys;
use fet_core::method::Memory;
use fet_core::parameters::host;

/// Cache of memories, which evicts those that were not used for the longest time.
///
/// The cache has two generations. If the recent one is full, it becomes the older one, whose unused memories are evicted.
#[derive(Debug)]
pub(super) struct MemoryCache {
    /// Maximum number of memories in both generations together.
    capacity: usize,
    recent: HashMap<i64, Arc<RowMemory>>,
    older: HashMap<i64, Arc<RowMemory>>,
}

/// Memory of one record.
#[derive(Debug)]
struct RowMemory {
    /// The key, because two keys may have the same digest.
    key: Keys,
    /// Memory, [K, W].
    values: Vec<f32>,
    shape: [usize; 2],
    available: usize,
    /// Similarities of each party's neighbours.
    similarities: Vec<Vec<f32>>,
}

/// Memories of all records of a request.
#[derive(Debug)]
pub(super) struct KnownMemories(Vec<Arc<RowMemory>>);

impl MemoryCache {
    /// Makes an empty cache of at most `capacity` memories.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, recent: HashMap::new(), older: HashMap::new() }
    }

    /// Returns the memories of all records, or `None` if one is missing.
    pub(super) fn get(&mut self, keys: &Keys) -> Option<KnownMemories> {
        if self.capacity == 0 {
            return None;
        }
        let mut found = Vec::with_capacity(keys.rows());
        for (row, digest) in keys.digests().into_iter().enumerate() {
            let known = self.recent.get(&digest).or_else(|| self.older.get(&digest))?;
            if known.key != keys.select_rows(&[row]) {
                return None;
            }
            found.push((digest, Arc::clone(known)));
        }
        for (digest, known) in &found {
            self.insert(*digest, Arc::clone(known));
        }
        let memories: Vec<_> = found.into_iter().map(|(_, known)| known).collect();
        // The parties may have other numbers of records since they joined again.
        let first = memories.first()?;
        let alike = |one: &Arc<RowMemory>| (one.shape, one.available) == (first.shape, first.available);
        memories.iter().all(alike).then_some(KnownMemories(memories))
    }

    /// Keeps the memories of a batch: those of the records `rows` with these keys.
    pub(super) fn keep(&mut self, keys: &Keys, rows: &[usize], memory: &Memory) {
        if self.capacity == 0 {
            return;
        }
        let keys = keys.select_rows(rows);
        let [count, positions, width] = memory.tensor.dims();
        assert_eq!(count, rows.len(), "one memory for each record");
        let values = host(memory.tensor.clone());
        let similarities: Vec<(usize, Vec<f32>)> =
            memory.similarities.iter().map(|values| (values.dims()[1], host(values.clone()))).collect();
        for (row, digest) in keys.digests().into_iter().enumerate() {
            let of_row = |values: &[f32], columns: usize| values[row * columns..(row + 1) * columns].to_vec();
            let known = RowMemory {
                key: keys.select_rows(&[row]),
                values: of_row(&values, positions * width),
                shape: [positions, width],
                available: memory.available,
                similarities: similarities.iter().map(|(columns, values)| of_row(values, *columns)).collect(),
            };
            self.insert(digest, Arc::new(known));
        }
    }

    fn insert(&mut self, digest: i64, known: Arc<RowMemory>) {
        let half = self.capacity.div_ceil(2);
        if self.recent.len() >= half && !self.recent.contains_key(&digest) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.older.remove(&digest);
        self.recent.insert(digest, known);
    }
}

impl KnownMemories {
    /// Returns the memory of some records on a device.
    pub(super) fn memory(&self, rows: &[usize], device: &Device) -> Memory {
        let known: Vec<&RowMemory> = rows.iter().map(|&row| &*self.0[row]).collect();
        let first = known[0];
        let [positions, width] = first.shape;
        let values: Vec<f32> = known.iter().flat_map(|one| &one.values).copied().collect();
        let of_party = |party: usize| {
            let columns = first.similarities[party].len();
            let values: Vec<f32> = known.iter().flat_map(|one| &one.similarities[party]).copied().collect();
            Tensor::from_data(TensorData::new(values, [rows.len(), columns]), device)
        };
        Memory {
            tensor: Tensor::from_data(TensorData::new(values, [rows.len(), positions, width]), device),
            available: first.available,
            similarities: (0..first.similarities.len()).map(of_party).collect(),
        }
    }
}
