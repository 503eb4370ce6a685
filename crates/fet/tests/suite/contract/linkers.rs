//! What every linker keeps to.

use fet_core::data::{Keys, Matrix, TextTable};
use fet_core::linker::Linker;
use rand::RngExt;

use super::{all, rng};

/// Keys of each kind that a linker takes, drawn by `round`.
fn keys_for(linker: &dyn Linker, rows: usize, columns: usize, round: u64) -> Vec<Keys> {
    let kinds: [Keys; 2] = [keys(rows, columns, round).into(), names(rows, columns, round)];
    kinds.into_iter().filter(|keys| linker.takes().fits(keys)).collect()
}

#[test]
fn linkers_sort_stay_in_range_honour_k_and_repeat() {
    for slot in all::<dyn Linker>() {
        for columns in [1, 2, 4] {
            let linker = slot.build(&()).expect("sound defaults");
            let neighbours = linker.neighbours();
            let kinds = keys_for(linker.as_ref(), 30, columns, 1);
            assert!(!kinds.is_empty(), "{slot:?} takes some keys");
            for (kind, queries) in kinds.iter().enumerate() {
                let records = |rows, columns| keys_for(linker.as_ref(), rows, columns, 2).swap_remove(kind);
                let links = linker.link(queries, &records(100, columns), 3).expect("linkable");
                assert_eq!((links.rows(), links.neighbours()), (30, neighbours), "{slot:?}");
                for query in 0..30 {
                    assert!(links.row(query).iter().all(|&record| record < 100), "{slot:?}");
                    let similarities = links.similarities(query);
                    assert_eq!(similarities.is_some(), linker.gives_similarities(), "{slot:?}");
                    assert!(similarities.is_none_or(|all| all.is_sorted_by(|a, b| a >= b)), "{slot:?}");
                    let few = neighbours.min(3);
                    assert_eq!(links.first(3).row(query), &links.row(query)[..few], "{slot:?}");
                    let mut distinct = links.row(query)[..links.available()].to_vec();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), links.available(), "{slot:?} names no record twice");
                }
                let again = slot.build(&()).expect("sound defaults").link(queries, &records(100, columns), 3);
                assert!(again.is_ok_and(|again| again == links), "{slot:?} repeats");
                assert!(linker.link(queries, &records(100, columns + 1), 3).is_err(), "{slot:?}: other keys");
                let few = linker.link(queries, &records(neighbours - 1, columns), 3);
                assert!(few.is_err(), "{slot:?}: fewer records than K");
            }
        }
    }
}

/// What leaves the primary is what it is linked by: the same links whether the keys are concealed or not, by way of a
/// challenge where the linker poses one.
#[test]
fn linkers_link_concealed_keys_as_they_link_keys() {
    for slot in all::<dyn Linker>() {
        let linker = slot.build(&()).expect("sound defaults");
        for (kind, queries) in keys_for(linker.as_ref(), 30, 2, 1).iter().enumerate() {
            let records = keys_for(linker.as_ref(), 100, 2, 2).swap_remove(kind);
            let plain = linker.link(queries, &records, 3).expect("linkable");
            let concealed = linker.conceal(queries, 3).expect("they can be concealed");
            assert_eq!((concealed.rows(), concealed.columns()), (30, 2), "{slot:?}");
            let challenge = linker.challenge(&records).expect("a challenge or none");
            assert_eq!(challenge.is_some(), linker.asks(), "{slot:?}");
            let links = match challenge {
                Some(challenge) => {
                    let answer = linker.answer(&challenge).expect("its own challenge");
                    linker.link_answered(&concealed, &records, &answer, 3)
                }
                None => linker.link(&concealed, &records, 3),
            };
            assert_eq!(links, Ok(plain), "{slot:?}");
        }
    }
}

#[test]
fn linkers_refuse_keys_of_the_wrong_kind_and_say_what_they_reveal() {
    for slot in all::<dyn Linker>() {
        let linker = slot.build(&()).expect("sound defaults");
        let kinds: [Keys; 2] = [keys(50, 2, 1).into(), names(50, 2, 1)];
        for wrong in kinds.iter().filter(|keys| !linker.takes().fits(keys)) {
            let error = linker.link(wrong, wrong, 3).expect_err("refused").to_string();
            for part in ["linker.kind", linker.takes().name(), wrong.kind_name()] {
                assert!(error.contains(part), "{slot:?}: {part} in {error}");
            }
        }
        let mixed = linker.link(&kinds[0], &kinds[1], 3);
        assert!(mixed.is_err() || slot.kind() == "random", "{slot:?}: numbers against text");
        let reveals = linker.reveals();
        assert!(
            [reveals.secondary, reveals.primary, reveals.outsider].iter().all(|text| !text.is_empty()),
            "{slot:?}"
        );
    }
}

/// A text key without content resembles nothing: neither another such nor anyone else.
#[test]
fn empty_keys_match_nothing() {
    for slot in all::<dyn Linker>() {
        let linker = slot.build(&()).expect("sound defaults");
        let (Some(floor), true) = (linker.floor(), linker.takes().fits(&names(1, 1, 1))) else { continue };
        let Keys::Text(records) = names(100, 2, 2) else { unreachable!("names are texts") };
        let mut cells = records.cells().to_vec();
        cells[..20].iter_mut().for_each(|cell| *cell = " - ".into());
        let records = Keys::Text(TextTable::new(2, cells));
        let queries = Keys::Text(TextTable::new(2, vec![String::new(), "N/A".into()]));
        let links = linker.link(&queries, &records, 3).expect("linkable");
        assert!(links.similarities(0).is_some_and(|all| all.iter().all(|&s| s <= floor)), "{slot:?}");
    }
}

fn keys(rows: usize, columns: usize, round: u64) -> Matrix<f64> {
    let mut rng = rng(round);
    Matrix::new(columns, (0..rows * columns).map(|_| rng.random()).collect())
}

/// Names of two words; a few records are like another's but for a letter.
fn names(rows: usize, columns: usize, round: u64) -> Keys {
    let mut rng = rng(round);
    let mut word = || (0..6).map(|_| char::from(b'a' + rng.random_range(0..26u8))).collect::<String>();
    Keys::Text(TextTable::new(columns, (0..rows * columns).map(|_| word()).collect()))
}
