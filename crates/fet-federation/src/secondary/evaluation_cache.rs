//! Cache of representations within an evaluation: rows with the same neighbours are encoded once.
//!
//! Records of the primary with the same key, such as flats in one building, have the same neighbours. Without
//! dropout, an encoder returns the same representation for them. A party knows the rows of an evaluation in
//! advance, so it keeps a representation only until the last batch that needs it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use fet_core::linker::Links;
use fet_core::message::Round;
use fet_kernels::Buffer;

use crate::schedule::{Part, Schedule};

/// Cache of evaluation results.
#[derive(Debug, Default)]
pub(super) struct EvaluationCache {
    /// Maximum number of cached values.
    room: usize,
    /// Rows with the same neighbours; `None` before the first evaluation.
    shared: Option<Shared>,
    /// Epoch of the evaluation.
    epoch: u32,
    /// Shape of a row's values.
    block: [usize; 2],
    cached: CachedValues,
}

impl EvaluationCache {
    /// Makes a cache of up to `bytes` bytes; 0 disables it.
    pub(super) fn new(bytes: usize) -> Self {
        Self { room: bytes / size_of::<f32>(), ..Self::default() }
    }

    /// Clears the cached values, because the model or the records change.
    pub(super) fn forget(&mut self) {
        self.cached = CachedValues::default();
    }

    /// Clears the cached values and the neighbours.
    pub(super) fn forget_links(&mut self) {
        self.forget();
        self.shared = None;
    }

    /// Returns the shape of a row's values in the encoder's last output.
    pub(super) fn block(&self) -> [usize; 2] {
        self.block
    }

    /// Sets the shape of a row's values to that of the encoder's output.
    pub(super) fn set_block(&mut self, block: [usize; 2]) {
        self.block = block;
    }

    /// Returns a plan for encoding these rows of an evaluation. Returns `None` if no two evaluated rows share
    /// their neighbours, or if the round is not an evaluation.
    pub(super) fn plan(
        &mut self,
        round: Round,
        rows: &[usize],
        links: &Links,
        schedule: &Schedule,
    ) -> Option<Plan> {
        let (part, epoch, batch) = match round {
            Round::Validation { epoch, batch } => (Part::Validation, epoch, batch),
            Round::Test { epoch, batch } => (Part::Test, epoch, batch),
            _ => return None,
        };
        if self.room == 0 {
            return None;
        }
        if self.epoch != epoch {
            self.forget();
            self.epoch = epoch;
        }
        let shared = self.shared.get_or_insert_with(|| Shared::find(links, schedule));
        if shared.starts.is_empty() {
            return None;
        }
        let now = match part {
            Part::Validation => batch,
            Part::Test => shared.first_test + batch,
        };
        let mut fresh: Vec<usize> = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        let sources = rows
            .iter()
            .map(|&row| {
                let list = shared.lists[row];
                if self.cached.has(list) {
                    return Source::Cached(list);
                }
                Source::Fresh(*places.entry(list).or_insert_with(|| {
                    fresh.push(row);
                    fresh.len() - 1
                }))
            })
            .collect();
        Some(Plan { now, fresh, sources })
    }

    /// Returns the values of all rows of a plan, given the values of its fresh rows.
    pub(super) fn complete(&mut self, plan: &Plan, fresh: Vec<f32>) -> Vec<f32> {
        let block = self.block[0] * self.block[1];
        if block == 0 {
            return fresh;
        }
        let Some(shared) = &self.shared else { return fresh };
        let of_fresh = |place: usize| &fresh[place * block..(place + 1) * block];
        let all = (plan.fresh.len() < plan.sources.len()).then(|| {
            fet_kernels::collect(plan.sources.len(), block, |row| match plan.sources[row] {
                Source::Cached(list) => self.cached.values(list),
                Source::Fresh(place) => of_fresh(place),
            })
        });
        for source in &plan.sources {
            if let Source::Cached(list) = source {
                self.cached.renew(*list, shared.next(*list, plan.now));
            }
        }
        let room = self.room / block;
        for (place, &row) in plan.fresh.iter().enumerate() {
            let list = shared.lists[row];
            if let Some(next) = shared.next(list, plan.now) {
                self.cached.admit(list, next, of_fresh(place), room);
            }
        }
        match all {
            Some(all) => {
                fet_kernels::give_back(fresh);
                all
            }
            None => fresh,
        }
    }
}

/// Sources of the values of a batch's rows.
#[derive(Debug)]
pub(super) struct Plan {
    /// Number of the batch among all batches evaluated in an epoch.
    now: u32,
    /// One row for each list of neighbours that must be encoded.
    pub(super) fresh: Vec<usize>,
    sources: Vec<Source>,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// A list that was encoded in an earlier batch.
    Cached(u32),
    /// Index of a fresh row.
    Fresh(usize),
}

/// Rows with the same neighbours, and the batches that evaluate them.
#[derive(Debug, Default)]
struct Shared {
    /// The list of each of the primary's rows; meaningless for a row that is not evaluated.
    lists: Vec<u32>,
    /// Start of each list in `batches`; empty if no two rows share a list.
    starts: Vec<u32>,
    /// The batches, validation first, that use each list, ascending.
    batches: Vec<u32>,
    /// Number of the first test batch.
    first_test: u32,
}

impl Shared {
    fn find(links: &Links, schedule: &Schedule) -> Self {
        let of_part = |part| schedule.evaluation(part, 0).into_iter().map(|(_, rows)| rows);
        let validation: Vec<Vec<usize>> = of_part(Part::Validation).collect();
        let first_test = validation.len() as u32;
        let batches: Vec<Vec<usize>> = validation.into_iter().chain(of_part(Part::Test)).collect();

        let mut lists = vec![0; links.rows()];
        let mut known: HashMap<List<'_>, u32> = HashMap::new();
        let mut counts: Vec<u32> = Vec::new();
        for &row in batches.iter().flatten() {
            let list = match known.entry(List::of_row(links, row)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    counts.push(0);
                    *new.insert(counts.len() as u32 - 1)
                }
            };
            counts[list as usize] += 1;
            lists[row] = list;
        }
        if counts.iter().all(|&count| count == 1) {
            return Self::default();
        }
        let mut starts = vec![0; counts.len() + 1];
        for (list, count) in counts.iter().enumerate() {
            starts[list + 1] = starts[list] + count;
        }
        let mut next = starts.clone();
        let mut places = vec![0; starts[counts.len()] as usize];
        for (batch, rows) in batches.iter().enumerate() {
            for &row in rows {
                let list = lists[row] as usize;
                places[next[list] as usize] = batch as u32;
                next[list] += 1;
            }
        }
        Self { lists, starts, batches: places, first_test }
    }

    /// Returns the next batch after `now` that uses a list.
    fn next(&self, list: u32, now: u32) -> Option<u32> {
        let [start, end] = [list, list + 1].map(|at| self.starts[at as usize] as usize);
        let batches = &self.batches[start..end];
        batches.get(batches.partition_point(|&batch| batch <= now)).copied()
    }
}

/// The neighbours of a row, with their similarities.
struct List<'a> {
    records: &'a [u32],
    similarities: &'a [f32],
}

impl<'a> List<'a> {
    fn of_row(links: &'a Links, row: usize) -> Self {
        Self { records: links.row(row), similarities: links.similarities(row).unwrap_or_default() }
    }

    fn bits(&self) -> impl Iterator<Item = u32> {
        self.similarities.iter().map(|similarity| similarity.to_bits())
    }
}

impl PartialEq for List<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.records == other.records && self.bits().eq(other.bits())
    }
}

impl Eq for List<'_> {}

impl Hash for List<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.records.hash(state);
        self.bits().for_each(|bits| bits.hash(state));
    }
}

/// Values of lists that occur in later batches. If there is not enough room for all, the lists whose next use
/// is latest are removed.
#[derive(Debug, Default)]
struct CachedValues {
    /// Place of each list's values, and the batch of its next use.
    lists: HashMap<u32, (Place, u32)>,
    /// The same lists, ordered by the batch of their next use.
    next: BTreeSet<(u32, u32)>,
    shelf: ValueStorage,
}

impl CachedValues {
    fn has(&self, list: u32) -> bool {
        self.lists.contains_key(&list)
    }

    fn values(&self, list: u32) -> &[f32] {
        self.shelf.at(self.lists[&list].0)
    }

    /// Records that a list was used; its next use is in batch `next`, or never.
    fn renew(&mut self, list: u32, next: Option<u32>) {
        let Some((place, due)) = self.lists.get_mut(&list) else { return };
        self.next.remove(&(*due, list));
        if let Some(next) = next {
            *due = next;
            self.next.insert((next, list));
        } else {
            self.shelf.free.push(*place);
            self.lists.remove(&list);
        }
    }

    /// Keeps a list whose next use is in batch `next`, if there is room or another list's next use is later.
    /// `room` is a number of lists.
    fn admit(&mut self, list: u32, next: u32, values: &[f32], room: usize) {
        let place = if self.lists.len() < room {
            self.shelf.place(values.len(), room)
        } else {
            let Some(&(latest, other)) = self.next.last().filter(|&&last| last > (next, list)) else {
                return;
            };
            self.next.remove(&(latest, other));
            self.lists.remove(&other).expect("it is kept").0
        };
        self.shelf.put(place, values);
        self.lists.insert(list, (place, next));
        self.next.insert((next, list));
    }
}

/// Storage for the values of lists, in a few large buffers.
#[derive(Debug, Default)]
struct ValueStorage {
    boards: Vec<Buffer>,
    block: usize,
    /// Number of places.
    places: usize,
    free: Vec<Place>,
}

/// A place: the board, and the offset of the values in it.
type Place = (usize, usize);

impl ValueStorage {
    /// Returns a place for `block` values. A new board has no more places than `room` leaves.
    fn place(&mut self, block: usize, room: usize) -> Place {
        self.block = block;
        if self.free.is_empty() {
            let left = room - self.places;
            let board = Buffer::largest(block, block * left.min(BOARD.div_ceil(block)));
            let places = left.min(board.len() / block);
            self.places += places;
            let number = self.boards.len();
            self.free.extend((0..places).rev().map(|place| (number, place * block)));
            self.boards.push(board);
        }
        self.free.pop().expect("a board has a place")
    }

    fn at(&self, (board, start): Place) -> &[f32] {
        &self.boards[board][start..start + self.block]
    }

    fn put(&mut self, (board, start): Place, values: &[f32]) {
        self.boards[board][start..start + self.block].copy_from_slice(values);
    }
}

/// Number of values of a new board if no buffer can be reused.
const BOARD: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::experiment::TrainSettings;
    use fet_core::message::Parts;
    use fet_core::method;

    /// Returns links of 200 records; rows with the same number modulo `distinct` have the same neighbours.
    fn links(distinct: u32) -> Links {
        let lists = (0..200u32).flat_map(|row| [row % distinct, (row + 1) % distinct]);
        Links::without_similarities(2, 2, lists.collect())
    }

    fn schedule() -> Schedule {
        let settings = TrainSettings { evaluation_batch_size: 8, ..TrainSettings::default() };
        let split = crate::schedule::split(&Parts::default(), 200, 3).expect("enough rows");
        Schedule::new(3, &settings, &method::Plan::default(), split, 1)
    }

    /// Evaluates rows with an encoder that returns the sum of a list's records, twice. Checks the values and
    /// returns the number of rows that were encoded.
    fn run(evaluated: &mut EvaluationCache, links: &Links, parts: &[Part], epoch: usize) -> usize {
        let schedule = schedule();
        let encode = |row: usize| [links.row(row).iter().sum::<u32>() as f32 + epoch as f32; 2];
        let mut encoded = 0;
        for &part in parts {
            for (round, rows) in schedule.evaluation(part, epoch) {
                let expected: Vec<f32> = rows.iter().flat_map(|&row| encode(row)).collect();
                let Some(plan) = evaluated.plan(round, &rows, links, &schedule) else {
                    encoded += rows.len();
                    continue;
                };
                encoded += plan.fresh.len();
                let fresh = plan.fresh.iter().flat_map(|&row| encode(row)).collect();
                evaluated.set_block([1, 2]);
                assert_eq!(evaluated.complete(&plan, fresh), expected, "{round}");
                let kept = &evaluated.cached;
                assert!(kept.lists.len() * 2 <= evaluated.room, "the cache exceeds its room");
                assert_eq!(kept.lists.len(), kept.next.len());
                assert_eq!(kept.lists.len() + kept.shelf.free.len(), kept.shelf.places);
            }
        }
        encoded
    }

    #[test]
    fn a_list_is_encoded_once_in_an_epoch_where_there_is_room() {
        let links = links(20);
        let both = [Part::Validation, Part::Test];
        for (bytes, most) in [(1 << 20, 20), (80, 35), (16, 50), (8, 55)] {
            let mut evaluated = EvaluationCache::new(bytes);
            for epoch in 0..3 {
                let encoded = run(&mut evaluated, &links, &both, epoch);
                assert!((20..=most).contains(&encoded), "{encoded} of 60 rows with {bytes} bytes");
                assert!(evaluated.cached.lists.is_empty(), "the cache is empty after the last batch");
            }
        }
    }

    #[test]
    fn nothing_is_kept_where_it_is_not_asked_for_or_no_rows_share_their_neighbours() {
        let both = [Part::Validation, Part::Test];
        assert_eq!(run(&mut EvaluationCache::new(0), &links(20), &both, 0), 60);
        assert_eq!(run(&mut EvaluationCache::new(1 << 20), &links(200), &both, 0), 60);
    }

    #[test]
    fn what_another_model_made_is_forgotten() {
        let links = links(20);
        let mut evaluated = EvaluationCache::new(1 << 20);
        // The validation rows leave values for the test rows, which the next epoch must not use.
        run(&mut evaluated, &links, &[Part::Validation], 0);
        assert!(!evaluated.cached.lists.is_empty());
        run(&mut evaluated, &links, &[Part::Validation], 1);
        evaluated.forget();
        assert!(evaluated.cached.lists.is_empty());
    }

    #[test]
    fn lists_with_other_similarities_are_others() {
        let indices = [1, 2, 1, 2, 1, 2];
        let links = Links::new(2, 2, indices.to_vec(), vec![0.5, 0.25, 0.5, 0.25, 0.5, 0.125]);
        let lists = [0, 1, 2].map(|row| List::of_row(&links, row));
        assert!(lists[0] == lists[1] && lists[1] != lists[2]);
    }
}
