//! Neighbours of a batch if not every record takes part: sampled records, and a limit on the rows that a
//! record serves.
//!
//! With a limit m, the records choose: each record offers itself to the m rows of the batch that are most
//! similar to it, independently of the other records. A row takes the K most similar of its offers. Adding or
//! removing a record then changes at most m rows. Replacing one changes at most 2m: those that it leaves and
//! those that its successor joins. (If the rows chose first and the limit were applied afterwards, a record
//! could displace others to further rows, and no such bound would hold.) A blank record of zeros fills empty
//! places.

use rand::{Rng, RngExt};

use fet_core::data::Keys;
use fet_core::linker::{LinkError, LinkTask, Linker, Links};
use fet_core::privacy::Selection;
use fet_core::rng::{ChaCha8Rng, Purpose, stream};

use crate::federation::PartyIndex;

/// For each row, the records that fill its K places and their similarities, most similar first; `None` for an
/// empty place.
pub(super) type Places = Vec<Vec<Option<(u32, f32)>>>;

/// A linker and the rules by which it selects records.
pub(super) struct Sampler<'a> {
    pub(super) linker: &'a dyn Linker,
    /// Number K of a row's places.
    pub(super) neighbours: usize,
    pub(super) selection: Selection,
    pub(super) linking_seed: u64,
    /// Draws the records that take part.
    pub(super) sampling: &'a mut ChaCha8Rng,
}

/// Links `queries` to a selection of `records`.
pub(super) fn select(sampler: &mut Sampler<'_>, queries: &Keys, records: &Keys) -> Result<Places, LinkError> {
    let Sampler { linker, neighbours, selection, linking_seed: seed, sampling } = sampler;
    let (linker, neighbours, selection, seed) = (*linker, *neighbours, *selection, *seed);
    let drawn: Vec<usize> = (0..records.rows())
        .filter(|_| selection.rate >= 1.0 || sampling.random::<f64>() < selection.rate)
        .collect();
    if drawn.is_empty() {
        return Ok(vec![vec![None; neighbours]; queries.rows()]);
    }
    let chosen = records.select_rows(&drawn);
    let mut offers: Vec<Vec<(f32, u32)>> = vec![Vec::new(); queries.rows()];
    if selection.occurrences == 0 {
        for (row, found) in nearest(linker, queries, &chosen, neighbours, seed)?.into_iter().enumerate() {
            offers[row].extend(
                found.into_iter().map(|(similarity, index)| (similarity, drawn[index as usize] as u32)),
            );
        }
    } else {
        // Here the records are the linker's queries, and the rows are searched.
        let chosen = linker.querier(seed).encode(&chosen)?;
        let found = nearest(linker, &chosen, queries, selection.occurrences, seed)?;
        for (&record, rows) in drawn.iter().zip(found) {
            for (similarity, row) in rows {
                offers[row as usize].push((similarity, record as u32));
            }
        }
    }
    let fill = |mut offers: Vec<(f32, u32)>| {
        offers.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut places: Vec<Option<(u32, f32)>> = offers
            .into_iter()
            .take(neighbours)
            .map(|(similarity, record)| Some((record, similarity)))
            .collect();
        places.resize(neighbours, None);
        places
    };
    Ok(offers.into_iter().map(fill).collect())
}

/// Returns the `take` most similar of `to` for each of `from`, with similarities; fewer if `to` has fewer.
fn nearest(
    linker: &dyn Linker,
    from: &Keys,
    to: &Keys,
    take: usize,
    seed: u64,
) -> Result<Vec<Vec<(f32, u32)>>, LinkError> {
    // A linker returns K neighbours or refuses. If there are too few, it repeats some, and the repeats are
    // removed below.
    let needed = linker.about().neighbours.max(1);
    let rows = to.rows();
    let repeated: Vec<usize> = (0..needed.max(rows)).map(|index| index % rows).collect();
    let links = linker.data_holder(seed).link(&LinkTask::new(from, &to.select_rows(&repeated)))?;
    let row = |query: usize| one_of_each(&links, query, rows, take);
    Ok((0..links.rows()).map(row).collect())
}

fn one_of_each(links: &Links, query: usize, rows: usize, take: usize) -> Vec<(f32, u32)> {
    let mut found: Vec<(f32, u32)> = Vec::with_capacity(take);
    let similarities = links.similarities(query);
    for (place, &index) in links.row(query).iter().take(links.available()).enumerate() {
        let index = index % rows as u32;
        // A linker without similarities still returns an order.
        let similarity = similarities.map_or(-(place as f32), |all| all[place]);
        if found.len() < take && found.iter().all(|&(_, seen)| seen != index) {
            found.push((similarity, index));
        }
    }
    found
}

/// Returns the seed of a secondary's linker; both sides of the linker know it.
pub fn linking_seed(seed: u64, party: PartyIndex) -> u64 {
    stream(seed, party.number(), Purpose::Linking, 0).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::Matrix;
    use fet_core::registry::Slot;

    fn keys(rows: usize, round: u64) -> Keys {
        let mut rng = stream(3, 0, Purpose::Linking, round);
        Matrix::new(2, (0..2 * rows).map(|_| rng.random()).collect()).into()
    }

    fn places(queries: &Keys, records: &Keys, neighbours: usize, selection: Selection) -> Places {
        let slot = Slot::<dyn Linker>::with_defaults("nearest").expect("sound defaults");
        let linker = slot.build(&()).expect("sound defaults");
        let mut sampling = stream(3, 0, Purpose::Sampling, 0);
        let linker = linker.as_ref();
        let mut sampler = Sampler { linker, neighbours, selection, linking_seed: 0, sampling: &mut sampling };
        select(&mut sampler, queries, records).expect("linkable")
    }

    /// Returns the number of rows with other neighbours; `renumber` maps the records of `after` to their
    /// numbers in `before`.
    fn changed(before: &Places, after: &Places, renumber: impl Fn(u32) -> u32) -> usize {
        let records = |row: &[Option<(u32, f32)>]| -> Vec<Option<u32>> {
            row.iter().map(|place| place.map(|(record, _)| record)).collect()
        };
        let renumbered = |row| -> Vec<Option<u32>> {
            records(row).into_iter().map(|place| place.map(&renumber)).collect()
        };
        before.iter().zip(after).filter(|(a, b)| records(a) != renumbered(b)).count()
    }

    /// The law behind the sensitivity: removing any record changes the neighbours of at most m rows.
    #[test]
    fn a_record_that_goes_changes_no_more_rows_than_it_may_serve() {
        let (queries, records) = (keys(40, 1), keys(60, 2));
        for occurrences in [1, 3, 10] {
            let selection = Selection { rate: 1.0, occurrences };
            let before = places(&queries, &records, 4, selection);
            let mut most = 0;
            for removed in 0..60u32 {
                let rest: Vec<usize> = (0..60).filter(|&record| record != removed as usize).collect();
                let after = places(&queries, &records.select_rows(&rest), 4, selection);
                let changed = changed(&before, &after, |record| record + u32::from(record >= removed));
                assert!(changed <= occurrences, "{occurrences}: {changed}");
                most = most.max(changed);
            }
            // The bound is not vacuous.
            assert!(2 * most > occurrences, "{occurrences}: some record serves {most} rows");
        }
    }

    /// The law for a record that is replaced by one with another key: it leaves at most m rows and joins at
    /// most m others. Up to 2m rows change, and m would be too small a bound. A row has a place for every
    /// record here, so that each offer counts.
    #[test]
    fn a_record_that_is_replaced_changes_no_more_than_twice_as_many() {
        let (queries, records) = (keys(40, 1), keys(60, 2));
        for occurrences in [1, 3, 10, 20] {
            let selection = Selection { rate: 1.0, occurrences };
            let before = places(&queries, &records, 60, selection);
            let mut most = 0;
            for replaced in 0..60u32 {
                for other in [[0.1, 0.1], [0.9, 0.9], [0.1, 0.9], [0.5, 0.5]] {
                    let mut values = records.numbers().expect("numbers").values().to_vec();
                    let at = 2 * replaced as usize;
                    values[at..at + 2].copy_from_slice(&other);
                    let after = places(&queries, &Matrix::new(2, values).into(), 60, selection);
                    // A record with another key is another record.
                    let renumber = |record| if record == replaced { u32::MAX } else { record };
                    let changed = changed(&before, &after, renumber);
                    assert!(changed <= 2 * occurrences, "{occurrences}: {changed}");
                    most = most.max(changed);
                }
            }
            assert!(most > occurrences, "{occurrences}: a replaced record changes {most} rows");
        }
    }

    #[test]
    fn without_limit_the_nearest_of_the_sample_are_found() {
        let (queries, records) = (keys(40, 1), keys(60, 2));
        let all = places(&queries, &records, 4, Selection::ALL);
        assert!(all.iter().flatten().all(Option::is_some));
        let half = places(&queries, &records, 4, Selection { rate: 0.5, occurrences: 0 });
        let used = |places: &Places| {
            let mut used: Vec<u32> = places.iter().flatten().flatten().map(|(record, _)| *record).collect();
            used.sort_unstable();
            used.dedup();
            used.len()
        };
        assert!(used(&half) < 45 && used(&half) > 15 && used(&all) > 50, "{} of {}", used(&half), used(&all));
        // The rate is so small that places stay empty.
        let few = places(&queries, &records, 4, Selection { rate: 0.03, occurrences: 0 });
        assert!(few.iter().all(|row| row.iter().any(Option::is_none)));
        let none = places(&queries, &records, 4, Selection { rate: 1e-9, occurrences: 0 });
        assert!(none.iter().flatten().all(Option::is_none));
    }
}
