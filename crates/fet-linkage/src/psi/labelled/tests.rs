//! Comparison with a plain intersection on random tables, disclosure of messages, and refusals.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;

const QUIET: Progress<'static> = &|_| ();
const CONTEXT: &[u8] = b"both say so";

fn keys(texts: &[&str]) -> Vec<Option<Key>> {
    texts.iter().map(|text| (!text.is_empty()).then(|| key(text.as_bytes()))).collect()
}

/// Returns rows with few distinct keys, so that keys repeat; some rows have none.
fn table(rows: usize, distinct: u32, rng: &mut ChaCha20Rng) -> Vec<Option<Key>> {
    let mut row = || (rng.random_range(0..5) > 0).then(|| key(&rng.random_range(0..distinct).to_le_bytes()));
    (0..rows).map(|_| row()).collect()
}

fn numbered(rows: usize) -> Vec<Vec<u8>> {
    (0..rows).map(|row| vec![row as u8; row % 7]).collect()
}

fn sealed(
    request: &[u8],
    keys: &[Option<Key>],
    payloads: &[Vec<u8>],
    rng: &mut ChaCha20Rng,
) -> Result<Answer, PsiError> {
    Answer::sealed(request, &KeyedPayloads { keys, payloads }, CONTEXT, rng, QUIET)
}

fn exchanged(asked: &[&str], owned: &[&str], rng: &mut ChaCha20Rng) -> (Querier, Vec<u8>, Answer) {
    let (querier, request) = Querier::ask(keys(asked), rng, QUIET);
    let payloads = numbered(owned.len());
    let answer = sealed(&request, &keys(owned), &payloads, rng).expect("a request");
    (querier, request, answer)
}

#[test]
fn both_forms_are_a_plain_intersection() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for round in 0..60 {
        let sizes = [rng.random_range(0..24), rng.random_range(0..24)];
        let distinct = [1, 3, 12, 40][round % 4];
        let [asked, owned] = sizes.map(|rows| table(rows, distinct, &mut rng));
        let payloads = numbered(owned.len());
        let longest = payloads.iter().map(Vec::len).max().unwrap_or_default();
        let (querier, request) = Querier::ask(asked.clone(), &mut rng, QUIET);
        let querier = Querier::from_bytes(&querier.to_bytes()).expect("what it wrote");

        let sealed = sealed(&request, &owned, &payloads, &mut rng).expect("answered");
        let opened = querier.clone().open(&sealed, padded(longest), CONTEXT, QUIET).expect("opened");
        assert_eq!(opened.rows(), asked.len());
        for (row, key) in asked.iter().enumerate() {
            let same = |other: &usize| key.is_some() && owned[*other] == *key;
            let plain: Vec<&Vec<u8>> = (0..owned.len()).filter(same).map(|other| &payloads[other]).collect();
            assert_eq!(opened.row(row).iter().collect::<Vec<_>>(), plain, "round {round}, row {row}");
        }

        let counted = Answer::count(&request, &owned, CONTEXT, &mut rng, QUIET).expect("answered");
        let set = |keys: &[Option<Key>]| keys.iter().flatten().copied().collect::<BTreeSet<Key>>();
        let common = set(&asked).intersection(&set(&owned)).count();
        assert_eq!(querier.distinct(), set(&asked).len());
        assert_eq!(querier.count(&counted, CONTEXT, QUIET), Ok(common), "round {round}");
    }
}

fn all_differ(message: &[u8], length: usize, count: usize) {
    let parts: HashSet<&[u8]> = message.chunks(length).collect();
    assert_eq!((message.len(), parts.len()), (count * length, count));
}

/// Whatever keys repeat or are missing on either side, there are as many elements and records as rows. They
/// all differ and have equal length.
#[test]
fn messages_reveal_only_numbers_of_rows() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let tables = [
        ["a"; 6],
        ["a", "a", "b", "b", "c", "c"],
        ["a", "b", "c", "d", "e", "f"],
        ["", "", "a", "", "a", ""],
    ];
    for asked in &tables {
        for owned in &tables {
            let (_, request, sealed) = exchanged(asked, owned, &mut rng);
            let counted = Answer::count(&request, &keys(owned), CONTEXT, &mut rng, QUIET).expect("a request");
            all_differ(&request, ELEMENT, 6);
            for (answer, length) in [(&sealed, record(padded(5))), (&counted, TAG)] {
                all_differ(&answer.evaluated, ELEMENT, 6);
                all_differ(&answer.records, length, 6);
                // Tags alone differ, too.
                let tags: Vec<u8> =
                    answer.records.chunks(length).flat_map(|record| &record[..TAG]).copied().collect();
                all_differ(&tags, TAG, 6);
            }
        }
    }
}

/// All permutations of three rows are about equally frequent: chi-squared with 5 degrees of freedom over 600
/// answers is below 35.9, except with probability α = 1e-6.
#[test]
fn counts_are_shuffled_and_so_are_records() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let names = ["a", "b", "c"];
    let [mut of_elements, mut of_records] = [HashMap::<Vec<usize>, u32>::new(), HashMap::new()];
    for _ in 0..600 {
        let (querier, request) = Querier::ask(keys(&names), &mut rng, QUIET);
        // The data holder will draw this secret first. Its exponent determines the element of each key.
        let data_holder = Secret::draw(&mut rng.clone());
        let answer = Answer::count(&request, &keys(&names), CONTEXT, &mut rng, QUIET).expect("a request");
        let names_in_order: Vec<Key> = keys(&names).into_iter().flatten().collect();
        let known = data_holder.blind_keys(&names_in_order, hash_to_group, QUIET);
        let own = querier.unblinded(&answer, QUIET).expect("elements");
        let place = |element: &[u8]| own.chunks(ELEMENT).position(|other| other == element);
        let order = known.chunks(ELEMENT).map(|element| place(element).expect("it is answered"));
        *of_elements.entry(order.collect()).or_default() += 1;

        let payloads = (0..3).map(|row| vec![row]).collect::<Vec<_>>();
        let sealed = sealed(&request, &keys(&names), &payloads, &mut rng).expect("a request");
        let salt = exchange(Gives::Payloads, &identity(&request), CONTEXT, &sealed.evaluated);
        let own = querier.unblinded(&sealed, QUIET).expect("elements");
        let order = elements(&own).expect("elements").iter().zip(keys(&names)).map(|(own, key)| {
            let tag = Derived::new(&salt, &finalize(&key.expect("a key"), own)).tag(0);
            sealed
                .records
                .chunks(record(padded(1)))
                .position(|record| record[..TAG] == tag)
                .expect("in common")
        });
        *of_records.entry(order.collect()).or_default() += 1;
    }
    for seen in [of_elements, of_records] {
        assert_eq!(seen.len(), 6, "{seen:?}");
        let squares: f64 = seen.values().map(|&count| (f64::from(count) - 100.0).powi(2) / 100.0).sum();
        assert!(squares < 35.9, "{seen:?}");
    }
}

#[test]
fn payloads_belong_to_the_rows_of_their_keys() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let (querier, _, answer) = exchanged(&["a", "", "b"], &["b"], &mut rng);
    let opened = querier.open(&answer, padded(0), CONTEXT, QUIET).expect("opened");
    assert_eq!([0, 1, 2].map(|row| opened.row(row).len()), [0, 0, 1]);
}

/// Repeated exchanges of the same tables, and repeated answers to a request, share no element, tag or record.
#[test]
fn two_exchanges_share_no_element_or_tag() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let names = ["a", "b", "c"];
    let mut seen = HashSet::new();
    let mut fresh = |message: &[u8], length: usize| {
        message.chunks(length).for_each(|part| assert!(seen.insert(part[..TAG].to_vec())));
    };
    for _ in 0..3 {
        let (querier, request, sealed) = exchanged(&names, &names, &mut rng);
        let counted = Answer::count(&request, &keys(&names), CONTEXT, &mut rng, QUIET).expect("a request");
        fresh(&request, ELEMENT);
        fresh(&sealed.evaluated, ELEMENT);
        fresh(&sealed.records, record(padded(2)));
        fresh(&counted.evaluated, ELEMENT);
        fresh(&counted.records, TAG);
        fresh(&querier.secret.to_bytes(), ELEMENT);
    }
    // Elements of the other protocol differ, even under one exponent.
    assert_ne!(hash_to_group(b"a"), crate::psi::hash(b"a"));
}

type Damage = dyn Fn(&mut Vec<u8>);

#[test]
fn invalid_elements_are_refused_with_their_place() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let (querier, request, answer) = exchanged(&["a", "b", "c"], &["b"], &mut rng);
    let owned = keys(&["b"]);
    // An invalid element, the identity, a repeated element, and half an element.
    let cases: [(&Damage, PsiError); 4] = [
        (&|message| message[2 * ELEMENT..].fill(0xff), PsiError::Element(2)),
        (&|message| message[ELEMENT..2 * ELEMENT].fill(0), PsiError::Element(1)),
        (&|message| message.copy_within(..ELEMENT, ELEMENT), PsiError::Repeated(1)),
        (&|message| message.truncate(70), PsiError::Length(70)),
    ];
    for (damage, error) in cases {
        let mut damaged = request.clone();
        damage(&mut damaged);
        let counted = Answer::count(&damaged, &owned, CONTEXT, &mut rng, QUIET);
        assert_eq!(counted, Err(error.clone()));
        let sealed = sealed(&damaged, &owned, &[Vec::new()], &mut rng);
        assert_eq!(sealed, Err(error.clone()));
        let mut damaged = answer.clone();
        damage(&mut damaged.evaluated);
        let opened = querier.clone().open(&damaged, padded(0), CONTEXT, QUIET).map(|_| ());
        assert_eq!(opened, Err(error.clone()));
        assert_eq!(querier.clone().count(&damaged, CONTEXT, QUIET), Err(error));
    }
    let short = Answer { evaluated: answer.evaluated[..64].to_vec(), ..answer.clone() };
    let counted = querier.clone().count(&short, CONTEXT, QUIET);
    assert_eq!(counted, Err(PsiError::Count { expected: 3, found: 2 }));
    let cut = Answer { records: answer.records[1..].to_vec(), ..answer };
    let opened = querier.open(&cut, padded(0), CONTEXT, QUIET).map(|_| ());
    assert_eq!(opened, Err(PsiError::Records { expected: 36, found: 35 }));
}

#[test]
fn an_altered_payload_is_refused() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let (querier, _, answer) = exchanged(&["x", "a"], &["a"], &mut rng);
    for at in TAG..answer.records.len() {
        let mut altered = answer.clone();
        altered.records[at] ^= 1;
        let opened = querier.clone().open(&altered, padded(0), CONTEXT, QUIET).map(|_| ());
        assert_eq!(opened, Err(PsiError::Sealed(1)), "byte {at}");
    }
}

/// With another request, another form, another context, or elements of another answer, no row can be opened.
#[test]
fn another_exchange_opens_no_row() {
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let names = ["a", "b"];
    let (querier, request, answer) = exchanged(&names, &names, &mut rng);
    let (other, _, _) = exchanged(&names, &names, &mut rng);
    let again = sealed(&request, &keys(&names), &numbered(2), &mut rng).expect("a request");
    let mixed = Answer { evaluated: again.evaluated, records: answer.records.clone() };
    let cases =
        [(&other, &answer, CONTEXT), (&querier, &answer, b"something else"), (&querier, &mixed, CONTEXT)];
    for (querier, answer, context) in cases {
        let opened = querier.clone().open(answer, padded(1), context, QUIET).expect("it is well formed");
        assert!(opened.row(0).is_empty() && opened.row(1).is_empty());
    }
    let found = querier.clone().open(&answer, padded(1), CONTEXT, QUIET).expect("opened");
    assert_eq!([found.row(0).len(), found.row(1).len()], [1, 1], "the right ones find it");
    let tags = answer.records.chunks(record(padded(1))).flat_map(|record| record[..TAG].to_vec()).collect();
    let as_count = Answer { evaluated: answer.evaluated, records: tags };
    assert_eq!(querier.count(&as_count, CONTEXT, QUIET), Ok(0));
}

/// Any difference in an exchange gives a different salt, even if only the boundary between two adjacent parts
/// moves.
#[test]
fn every_part_of_an_exchange_changes_its_salt() {
    let salts = [
        exchange(Gives::Count, &[1; 32], b"ab", b"cd"),
        exchange(Gives::Payloads, &[1; 32], b"ab", b"cd"),
        exchange(Gives::Count, &[2; 32], b"ab", b"cd"),
        exchange(Gives::Count, &[1; 32], b"abc", b"d"),
        exchange(Gives::Count, &[1; 32], b"ax", b"cd"),
        exchange(Gives::Count, &[1; 32], b"ab", b"cx"),
    ];
    assert_eq!(salts.iter().collect::<HashSet<_>>().len(), salts.len());
}

/// If one element of an answer is from another answer, the other rows cannot be opened either.
#[test]
fn elements_and_records_belong_together() {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let (querier, _, answer) = exchanged(&["a", "x"], &["a"], &mut rng);
    let (_, _, other) = exchanged(&["a", "x"], &["a"], &mut rng);
    let mut altered = answer.clone();
    altered.evaluated[ELEMENT..].copy_from_slice(&other.evaluated[ELEMENT..]);
    let found = |answer: &Answer| {
        querier.clone().open(answer, padded(0), CONTEXT, QUIET).expect("well formed").row(0).len()
    };
    assert_eq!((found(&answer), found(&altered)), (1, 0));
}

/// A querier with a count cannot try its keys on the shuffled elements, because tags do not depend on the
/// key.
#[test]
fn the_tags_of_a_count_do_not_follow_from_the_keys() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let names = ["a", "b", "c"];
    let (querier, request) = Querier::ask(keys(&names), &mut rng, QUIET);
    let answer = Answer::count(&request, &keys(&names), CONTEXT, &mut rng, QUIET).expect("a request");
    let salt = exchange(Gives::Count, &identity(&request), CONTEXT, &answer.evaluated);
    let own = querier.unblinded(&answer, QUIET).expect("elements");
    for element in elements(&own).expect("elements") {
        for key in keys(&names).iter().flatten() {
            let tried = Derived::new(&salt, &finalize(key, element)).tag(0);
            assert!(answer.records.chunks(TAG).all(|tag| tag != tried));
        }
    }
}

#[test]
fn refuses_invalid_bytes_of_a_querier() {
    let mut rng = ChaCha20Rng::seed_from_u64(10);
    let (querier, _) = Querier::ask(keys(&["a", ""]), &mut rng, QUIET);
    let bytes = querier.to_bytes();
    assert_eq!(Querier::from_bytes(&bytes).expect("itself").to_bytes(), bytes);
    let strange: [&[u8]; 4] = [&[], &bytes[..32], &bytes[1..], &[0xff; 96]];
    assert!(strange.into_iter().all(|bytes| Querier::from_bytes(bytes).is_none()));
    assert_eq!(format!("{querier:?}"), "Querier(2 rows)");
}
