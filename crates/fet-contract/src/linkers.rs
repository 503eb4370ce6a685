//! The laws of a linker and of its two sides, querier and data holder.

use std::sync::atomic::{AtomicUsize, Ordering};

use fet_core::data::{Keys, Matrix, Sealed, TextTable};
use fet_core::linker::{About, LinkError, LinkTask, Linker, Links};
use fet_core::registry::Slot;
use rand::RngExt;

use crate::rng;

const SEED: u64 = 3;

/// Tests all laws of a linker with these settings, which must accept 1, 2 and 4 key columns.
///
/// # Panics
/// If the linker breaks a law.
pub fn check(slot: &Slot<dyn Linker>) {
    returns_k_sorted_links_in_range_and_repeats(slot);
    separately_built_sides_find_the_same_links(slot);
    refuses_wrong_and_missing_messages(slot);
    links_each_query_separately(slot);
    refuses_wrong_keys_and_states_its_disclosure(slot);
    empty_keys_match_nothing(slot);
}

fn build(slot: &Slot<dyn Linker>) -> Box<dyn Linker> {
    slot.build(&()).expect("sound settings")
}

fn link(linker: &dyn Linker, queries: &Keys, records: &Keys) -> Result<Links, LinkError> {
    fet_core::linker::link(linker, queries, records, SEED, &|_| ())
}

/// Returns keys of each kind that a linker takes, drawn by `round`.
fn keys_for(linker: &dyn Linker, rows: usize, columns: usize, round: u64) -> Vec<Keys> {
    let kinds: [Keys; 2] = [keys(rows, columns, round).into(), names(rows, columns, round)];
    kinds.into_iter().filter(|keys| linker.about().takes.fits(keys)).collect()
}

/// Returns a number of records that the linker accepts for 30 queries: exactly K per query if records belong
/// to rows by position.
fn records_for(linker: &dyn Linker) -> usize {
    let About { by_position, neighbours, .. } = linker.about();
    if by_position { 30 * neighbours } else { 100 }
}

/// Tests that the links are K valid indices for each query, without repeats and sorted by similarity, and that
/// the linker repeats its links and refuses tables that do not fit.
pub fn returns_k_sorted_links_in_range_and_repeats(slot: &Slot<dyn Linker>) {
    for columns in [1, 2, 4] {
        let linker = build(slot);
        let About { neighbours, similarities: similar, .. } = linker.about();
        let (kinds, count) = (keys_for(linker.as_ref(), 30, columns, 1), records_for(linker.as_ref()));
        assert!(!kinds.is_empty(), "{slot:?} takes some keys");
        for (kind, queries) in kinds.iter().enumerate() {
            let records = |rows, columns| keys_for(linker.as_ref(), rows, columns, 2).swap_remove(kind);
            let links = linked(slot, linker.as_ref(), queries, &records(count, columns));
            assert_eq!((links.rows(), links.neighbours()), (30, neighbours), "{slot:?}: queries and K");
            for query in 0..30 {
                let is_record = |&record: &u32| (record as usize) < count;
                assert!(links.row(query).iter().all(is_record), "{slot:?}: an index beyond the records");
                let similarities = links.similarities(query);
                assert_eq!(similarities.is_some(), similar, "{slot:?}: `About::similarities`");
                assert!(
                    similarities.is_none_or(|all| all.is_sorted_by(|a, b| a >= b)),
                    "{slot:?}: the order"
                );
                let few = neighbours.min(3);
                assert_eq!(links.first(3).row(query), &links.row(query)[..few], "{slot:?}");
                let mut distinct = links.row(query)[..links.available()].to_vec();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), links.available(), "{slot:?} names no record twice");
            }
            let again = link(build(slot).as_ref(), queries, &records(count, columns));
            assert!(again.is_ok_and(|again| again == links), "{slot:?}: the same links if it links again");
            assert!(
                link(linker.as_ref(), queries, &records(count, columns + 1)).is_err(),
                "{slot:?}: one column more"
            );
            let few = link(linker.as_ref(), queries, &records(neighbours - 1, columns));
            assert!(few.is_err(), "{slot:?}: fewer records than K");
        }
    }
}

/// Tests that two sides that are built separately, as in two processes, and exchange only messages find the
/// same links, and that the progress adds up.
pub fn separately_built_sides_find_the_same_links(slot: &Slot<dyn Linker>) {
    let linker = build(slot);
    let about = linker.about();
    for (kind, queries) in keys_for(linker.as_ref(), 30, 2, 1).iter().enumerate() {
        let count = records_for(linker.as_ref());
        let records = keys_for(linker.as_ref(), count, 2, 2).swap_remove(kind);
        let expected = linked(slot, linker.as_ref(), queries, &records);

        let mut querier = build(slot).querier(SEED);
        let encoded = querier.encode(queries).expect("they can be encoded");
        assert_eq!((encoded.rows(), encoded.columns()), (30, 2), "{slot:?}: the shape of the encoded keys");
        assert_eq!(
            matches!(encoded, Keys::Sealed(_)),
            !about.in_the_clear,
            "{slot:?}: `About::in_the_clear`"
        );
        if let Keys::Sealed(message) = &encoded {
            assert!(!shows(message.bytes(), queries), "{slot:?} sends a key as it is");
        }

        let mut data_holder = build(slot).data_holder(SEED);
        let challenge = data_holder.challenge(&encoded, &records).expect("a challenge or none");
        assert_eq!(challenge.is_some(), about.challenges, "{slot:?}: `About::challenges`");
        if let Some(challenge) = &challenge {
            assert!(!shows(challenge.bytes(), &records), "{slot:?} sends a key as it is");
        }
        let answer =
            challenge.map(|challenge| querier.answer(&challenge).expect("the data holder's challenge"));

        let heard = AtomicUsize::new(0);
        let progress = |count| {
            heard.fetch_add(count, Ordering::Relaxed);
        };
        let task =
            LinkTask { answer: answer.as_ref(), progress: &progress, ..LinkTask::new(&encoded, &records) };
        assert_eq!(data_holder.link(&task), Ok(expected), "{slot:?}: the links of separate sides");
        assert_eq!(heard.into_inner(), 30, "{slot:?}: progress");
        assert!(data_holder.warnings().is_empty(), "{slot:?}: a warning about sound keys");
    }
}

/// Returns true if a message contains a key verbatim: a whole row of numbers, or a text.
///
/// A linker may declare that single numbers occur, because the ranges of columns are keys.
fn shows(message: &[u8], keys: &Keys) -> bool {
    let cells: Vec<Vec<u8>> = match keys {
        Keys::Numbers(keys) => {
            let row = |row| keys.row(row).iter().flat_map(|x| x.to_le_bytes()).collect();
            (0..keys.rows()).map(row).collect()
        }
        Keys::Text(keys) => keys.cells().iter().map(|cell| cell.as_bytes().to_vec()).collect(),
        Keys::Sealed(_) => Vec::new(),
    };
    cells.iter().any(|cell| message.windows(cell.len()).any(|part| part == cell.as_slice()))
}

/// Tests that a message at the wrong time, or a missing message, is an error.
pub fn refuses_wrong_and_missing_messages(slot: &Slot<dyn Linker>) {
    let linker = build(slot);
    let queries = keys_for(linker.as_ref(), 30, 2, 1).swap_remove(0);
    let records = keys_for(linker.as_ref(), 100, 2, 2).swap_remove(0);
    let (mut querier, mut data_holder) = (linker.querier(SEED), linker.data_holder(SEED));
    let nonsense = Sealed::new(100, 2, vec![7; 33]);
    assert!(matches!(querier.answer(&nonsense), Err(LinkError::Message(_))), "{slot:?}");
    let encoded = querier.encode(&queries).expect("they can be encoded");
    if linker.about().challenges {
        let task = LinkTask::new(&encoded, &records);
        assert!(data_holder.link(&task).is_err(), "{slot:?}: before the challenge");
        let challenge = data_holder.challenge(&encoded, &records).expect("posed").expect("posed");
        assert!(data_holder.link(&task).is_err(), "{slot:?}: without an answer");
        let wrong = data_holder.link(&LinkTask { answer: Some(&nonsense), ..task });
        assert!(matches!(wrong, Err(LinkError::Message(_))), "{slot:?}: {wrong:?}");
        // The challenge is still valid.
        let answer = querier.answer(&challenge).expect("the data holder's challenge");
        let task = LinkTask { answer: Some(&answer), ..task };
        assert!(data_holder.link(&task).is_ok(), "{slot:?}");
        assert!(data_holder.link(&task).is_err(), "{slot:?}: an answer serves once");
    }
    // Message of another linker.
    let other = if linker.about().in_the_clear { Keys::Sealed(nonsense) } else { queries };
    assert!(
        linker.data_holder(SEED).link(&LinkTask::new(&other, &records)).is_err(),
        "{slot:?}: foreign keys"
    );
}

/// Tests that each query has the same links with other queries and without them, if the linker declares this.
/// The limit on the number of rows that a record serves rests on this property. Returns true if the linker
/// declares it.
pub fn links_each_query_separately(slot: &Slot<dyn Linker>) -> bool {
    let linker = build(slot);
    if !linker.about().independent {
        return false;
    }
    assert!(linker.about().in_the_clear, "{slot:?}: only then neighbours are chosen for each batch");
    for (kind, queries) in keys_for(linker.as_ref(), 30, 2, 1).iter().enumerate() {
        let records = keys_for(linker.as_ref(), 100, 2, 2).swap_remove(kind);
        let all = linked(slot, linker.as_ref(), queries, &records);
        for rows in [vec![7], vec![29, 3, 3, 11]] {
            let few = linked(slot, linker.as_ref(), &queries.select_rows(&rows), &records);
            let same = |(place, &row): (usize, &usize)| {
                few.row(place) == all.row(row) && few.similarities(place) == all.similarities(row)
            };
            assert!(
                rows.iter().enumerate().all(same),
                "{slot:?}: it claims to be independent, but the links of the queries {rows:?} depend on the other queries"
            );
        }
    }
    true
}

/// Tests that the linker refuses keys of another kind and states the information that it reveals.
pub fn refuses_wrong_keys_and_states_its_disclosure(slot: &Slot<dyn Linker>) {
    let linker = build(slot);
    let About { takes, reveals, .. } = linker.about();
    let kinds: [Keys; 2] = [keys(50, 2, 1).into(), names(50, 2, 1)];
    for wrong in kinds.iter().filter(|keys| !takes.fits(keys)) {
        let error = link(linker.as_ref(), wrong, wrong).expect_err("refused").to_string();
        for part in ["linker.kind", takes.name(), wrong.kind_name()] {
            assert!(error.contains(part), "{slot:?}: {part} in {error}");
        }
    }
    let mixed = link(linker.as_ref(), &kinds[0], &kinds[1]);
    assert!(mixed.is_err() || !linker.about().similarities, "{slot:?}: numbers against text");
    assert!(
        [reveals.secondary, reveals.primary, reveals.eavesdropper].iter().all(|text| !text.is_empty()),
        "{slot:?}: `Reveals` states the information of each side"
    );
}

/// Tests that an empty text key is similar to no key, not even to another empty key, if the linker takes texts
/// and has a floor. Returns true if it does.
pub fn empty_keys_match_nothing(slot: &Slot<dyn Linker>) -> bool {
    let linker = build(slot);
    let About { floor, takes, .. } = linker.about();
    let (Some(floor), true) = (floor, takes.fits(&names(1, 1, 1))) else { return false };
    let Keys::Text(records) = names(100, 2, 2) else { unreachable!("names are texts") };
    let mut cells = records.cells().to_vec();
    cells[..20].iter_mut().for_each(|cell| *cell = " - ");
    let records = Keys::Text(TextTable::from_cells(2, cells));
    let queries = Keys::Text(TextTable::new(2, vec![String::new(), "...".into()]));
    let links = linked(slot, linker.as_ref(), &queries, &records);
    assert!(
        links.similarities(0).is_some_and(|all| all.iter().all(|&s| s <= floor)),
        "{slot:?}: an empty key matches a record"
    );
    true
}

fn linked(slot: &Slot<dyn Linker>, linker: &dyn Linker, queries: &Keys, records: &Keys) -> Links {
    link(linker, queries, records).unwrap_or_else(|error| panic!("{slot:?}: cannot link: {error}"))
}

fn keys(rows: usize, columns: usize, round: u64) -> Matrix<f64> {
    let mut rng = rng(round);
    Matrix::new(columns, (0..rows * columns).map(|_| rng.random()).collect())
}

/// Returns names of two words; a few records differ from another record by one letter.
fn names(rows: usize, columns: usize, round: u64) -> Keys {
    let mut rng = rng(round);
    let mut word = || (0..6).map(|_| char::from(b'a' + rng.random_range(0..26u8))).collect::<String>();
    Keys::Text(TextTable::new(columns, (0..rows * columns).map(|_| word()).collect()))
}
