//! Rows with the same neighbours, encoded once in an evaluation.
//!
//! Where records of the primary have the same key, as flats of one building do, they have the same neighbours, and without dropout an
//! encoder makes the same of them. A party knows which rows it will be asked for, so it keeps what a later batch needs, and no longer.

mod kept;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

use fet_core::linker::Links;
use fet_core::message::Round;

use self::kept::Kept;
use crate::schedule::{Part, Schedule};

/// What a party keeps of an evaluation.
#[derive(Debug, Default)]
pub(super) struct Evaluated {
    /// Values that it may keep.
    room: usize,
    /// Which rows have the same neighbours; nothing before the first evaluation.
    shared: Option<Shared>,
    /// The epoch of the evaluation.
    epoch: u32,
    /// The shape of a row's values.
    block: [usize; 2],
    kept: Kept,
}

impl Evaluated {
    /// Keeps up to `bytes`; none at all for 0.
    pub(super) fn new(bytes: usize) -> Self {
        Self { room: bytes / size_of::<f32>(), ..Self::default() }
    }

    /// Forgets what it kept: the model or the records are others from here on.
    pub(super) fn forget(&mut self) {
        self.kept = Kept::default();
    }

    /// Forgets all, the neighbours too.
    pub(super) fn forget_links(&mut self) {
        self.forget();
        self.shared = None;
    }

    /// The shape of a row's values, as the encoder last gave them.
    pub(super) fn block(&self) -> [usize; 2] {
        self.block
    }

    /// Says what an encoder gave.
    pub(super) fn set_block(&mut self, block: [usize; 2]) {
        self.block = block;
    }

    /// What is to be encoded of these rows of an evaluation; nothing where no two rows that are evaluated share their neighbours, or
    /// where this is no evaluation.
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
        let shared = self.shared.get_or_insert_with(|| Shared::of(links, schedule));
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
                if self.kept.has(list) {
                    return Source::Kept(list);
                }
                Source::Fresh(*places.entry(list).or_insert_with(|| {
                    fresh.push(row);
                    fresh.len() - 1
                }))
            })
            .collect();
        Some(Plan { now, fresh, sources })
    }

    /// The values of all rows of a plan, made of those of its fresh ones.
    pub(super) fn complete(&mut self, plan: &Plan, fresh: Vec<f32>) -> Vec<f32> {
        let block = self.block[0] * self.block[1];
        if block == 0 {
            return fresh;
        }
        let Some(shared) = &self.shared else { return fresh };
        let of_fresh = |place: usize| &fresh[place * block..(place + 1) * block];
        let all = (plan.fresh.len() < plan.sources.len()).then(|| {
            fet_kernels::collect(plan.sources.len(), block, |row| match plan.sources[row] {
                Source::Kept(list) => self.kept.values(list),
                Source::Fresh(place) => of_fresh(place),
            })
        });
        for source in &plan.sources {
            if let Source::Kept(list) = source {
                self.kept.renew(*list, shared.next(*list, plan.now));
            }
        }
        let room = self.room / block;
        for (place, &row) in plan.fresh.iter().enumerate() {
            let list = shared.lists[row];
            if let Some(next) = shared.next(list, plan.now) {
                self.kept.admit(list, next, of_fresh(place), room);
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

/// How the values of a batch's rows come about.
#[derive(Debug)]
pub(super) struct Plan {
    /// The batch's place among all that are evaluated in an epoch.
    now: u32,
    /// A row for each list of neighbours that is to be encoded.
    pub(super) fresh: Vec<usize>,
    sources: Vec<Source>,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// A list that was encoded before.
    Kept(u32),
    /// A place among the fresh ones.
    Fresh(usize),
}

/// Which rows have the same neighbours, and where they are evaluated.
#[derive(Debug, Default)]
struct Shared {
    /// The list of each of the primary's rows; without meaning for one that is not evaluated.
    lists: Vec<u32>,
    /// Where each list's batches begin; empty where no two rows share a list.
    starts: Vec<u32>,
    /// The batches, validation first, in which each list stands, ascending.
    batches: Vec<u32>,
    /// The first batch of the test.
    first_test: u32,
}

impl Shared {
    fn of(links: &Links, schedule: &Schedule) -> Self {
        let of_part = |part| schedule.evaluation(part, 0).into_iter().map(|(_, rows)| rows);
        let validation: Vec<Vec<usize>> = of_part(Part::Validation).collect();
        let first_test = validation.len() as u32;
        let batches: Vec<Vec<usize>> = validation.into_iter().chain(of_part(Part::Test)).collect();

        let mut lists = vec![0; links.rows()];
        let mut known: HashMap<List<'_>, u32> = HashMap::new();
        let mut counts: Vec<u32> = Vec::new();
        for &row in batches.iter().flatten() {
            let list = match known.entry(List::of(links, row)) {
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

    /// The next batch after `now` in which a list stands.
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
    fn of(links: &'a Links, row: usize) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::experiment::TrainSettings;
    use fet_core::message::Parts;
    use fet_core::method;

    /// 200 records of which each tenth has the same neighbours.
    fn links(distinct: u32) -> Links {
        let lists = (0..200u32).flat_map(|row| [row % distinct, (row + 1) % distinct]);
        Links::without_similarities(2, 2, lists.collect())
    }

    fn schedule() -> Schedule {
        let settings = TrainSettings { evaluation_batch_size: 8, ..TrainSettings::default() };
        let split = crate::schedule::split(&Parts::default(), 200, 3).expect("enough rows");
        Schedule::new(3, &settings, &method::Plan::default(), split, 1)
    }

    /// What an encoder that makes the sum of a list's records, twice, says of rows, and how many lists it was asked for.
    fn run(evaluated: &mut Evaluated, links: &Links, parts: &[Part], epoch: usize) -> usize {
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
                let kept = &evaluated.kept;
                assert!(kept.lists.len() * 2 <= evaluated.room, "no more than there is room for");
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
            let mut evaluated = Evaluated::new(bytes);
            for epoch in 0..3 {
                let encoded = run(&mut evaluated, &links, &both, epoch);
                assert!((20..=most).contains(&encoded), "{encoded} of 60 rows with {bytes} bytes");
                assert!(evaluated.kept.lists.is_empty(), "nothing is wanted after the last batch");
            }
        }
    }

    #[test]
    fn nothing_is_kept_where_it_is_not_asked_for_or_no_rows_share_their_neighbours() {
        let both = [Part::Validation, Part::Test];
        assert_eq!(run(&mut Evaluated::new(0), &links(20), &both, 0), 60);
        assert_eq!(run(&mut Evaluated::new(1 << 20), &links(200), &both, 0), 60);
    }

    #[test]
    fn what_another_model_made_is_forgotten() {
        let links = links(20);
        let mut evaluated = Evaluated::new(1 << 20);
        // The validation rows leave something for the test, which the next epoch must not use.
        run(&mut evaluated, &links, &[Part::Validation], 0);
        assert!(!evaluated.kept.lists.is_empty());
        run(&mut evaluated, &links, &[Part::Validation], 1);
        evaluated.forget();
        assert!(evaluated.kept.lists.is_empty());
    }

    #[test]
    fn lists_with_other_similarities_are_others() {
        let indices = [1, 2, 1, 2, 1, 2];
        let links = Links::new(2, 2, indices.to_vec(), vec![0.5, 0.25, 0.5, 0.25, 0.5, 0.125]);
        let lists = [0, 1, 2].map(|row| List::of(&links, row));
        assert!(lists[0] == lists[1] && lists[1] != lists[2]);
    }
}
