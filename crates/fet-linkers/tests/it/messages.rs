//! Arbitrary messages of the other party: a linker answers every message with links or an error, and never
//! with a panic.
//!
//! A seeded generator changes each linker's own messages as a broken or hostile party might. The linker
//! allocates no memory for a count that exceeds the bytes of the message.

use fet_core::data::{Keys, Matrix, Sealed, TextTable};
use fet_core::linker::{LinkError, LinkTask, Linker, Links};
use fet_core::registry::{Slot, plugins};
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use fet_linkers as _;
use rand::RngExt;

const RECORDS: usize = 12;
const SEED: u64 = 5;

fn numbers(rows: usize) -> Keys {
    Matrix::new(2, (0..2 * rows).map(|i| f64::from(i as u32 * 37 % 11)).collect()).into()
}

fn names(rows: usize) -> Keys {
    Keys::Text(TextTable::new(2, (0..2 * rows).map(|i| format!("name {}", i * 37 % 11)).collect()))
}

/// Returns every linker, with K at most the number of records.
fn linkers() -> Vec<(String, Box<dyn Linker>)> {
    let settings = |kind: &str| match kind {
        "top1" => String::new(),
        "posterior" => "inner = { kind = 'nearest', neighbours = 3 }".into(),
        "noisy" => "inner = { kind = 'federal', neighbours = 3, bits = 64 }".into(),
        _ => "neighbours = 3".into(),
    };
    let more = [
        "kind = 'clk'\nneighbours = 3\nblock_bits = 4",
        "kind = 'clk'\nneighbours = 3\nscoring = 'match-weights'",
        "kind = 'noisy'\nleak = 1\ninner = { kind = 'psi', neighbours = 3 }",
    ];
    let plugins = plugins::<dyn Linker>().into_iter().map(|plugin| plugin.kind);
    let plugins = plugins.map(|kind| format!("kind = '{kind}'\n{}", settings(kind)));
    let build = |settings: String| {
        let table = toml::from_str(&settings).expect("TOML");
        let slot = Slot::<dyn Linker>::from_table(table).expect("sound settings");
        (settings, slot.build(&()).expect("sound settings"))
    };
    plugins.chain(more.map(String::from)).map(build).collect()
}

/// Returns `message` as a broken or hostile party might send it.
fn mutated(message: &Sealed, rng: &mut ChaCha8Rng) -> Sealed {
    let (mut rows, mut columns, mut bytes) = (message.rows(), message.columns(), message.bytes().to_vec());
    let sizes = [0, 1, 2, 3, 7, 1 << 20, 1 << 40, usize::MAX / 32, usize::MAX / 8, usize::MAX];
    for _ in 0..rng.random_range(1..4) {
        match rng.random_range(0..8) {
            0 => rows = sizes[rng.random_range(0..sizes.len())],
            1 => columns = sizes[rng.random_range(0..sizes.len())],
            2 => bytes.truncate(rng.random_range(0..=bytes.len())),
            3 => bytes.extend((0..rng.random_range(0..70)).map(|_| rng.random::<u8>())),
            4 => bytes.iter_mut().for_each(|byte| *byte = rng.random()),
            5 => bytes.fill([0, 0x7f, 0xff][rng.random_range(0..3)]),
            // An eight-byte number that is not finite, or too large.
            6 if bytes.len() >= 8 => {
                let at = rng.random_range(0..=bytes.len() - 8);
                let at = if rng.random() { at / 8 * 8 } else { at };
                let values = [f64::NAN, f64::INFINITY, -f64::MAX, f64::MAX, 1e300, 5e-324];
                bytes[at..at + 8].copy_from_slice(&values[rng.random_range(0..6)].to_le_bytes());
            }
            _ if !bytes.is_empty() => {
                let at = rng.random_range(0..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
            _ => {}
        }
    }
    Sealed::new(rows, columns, bytes)
}

fn mutated_keys(keys: &Keys, rng: &mut ChaCha8Rng) -> Keys {
    let odd = [f64::NAN, f64::INFINITY, f64::MAX, -f64::MAX, 1e200, 5e-324, -0.0];
    match (keys, rng.random_range(0..4)) {
        (_, 0) => Keys::Sealed(mutated(&Sealed::new(keys.rows(), keys.columns(), vec![1; 64]), rng)),
        (Keys::Sealed(message), _) => Keys::Sealed(mutated(message, rng)),
        (_, 1) => {
            let columns = rng.random_range(1..4);
            let count = columns * rng.random_range(0..5);
            Matrix::new(columns, (0..count).map(|_| odd[rng.random_range(0..odd.len())]).collect()).into()
        }
        (Keys::Numbers(keys), _) => {
            let mut keys = keys.clone();
            let at = rng.random_range(0..keys.values().len());
            keys.values_mut()[at] = odd[rng.random_range(0..odd.len())];
            keys.into()
        }
        (Keys::Text(_), _) => {
            let columns = rng.random_range(1..4);
            let mut cell = || (0..rng.random_range(0..5)).map(|_| rng.random::<char>()).collect::<String>();
            Keys::Text(TextTable::new(columns, (0..columns * 3).map(|_| cell()).collect()))
        }
    }
}

/// Returns true for links that a caller can use: one row for each query, and only existing records.
fn sound(links: Result<Links, LinkError>, queries: &Keys, name: &str) -> bool {
    let Ok(links) = links else { return false };
    assert_eq!(links.rows(), queries.rows(), "{name}");
    assert!(links.all_indices().iter().all(|&index| (index as usize) < RECORDS), "{name}");
    true
}

#[test]
fn any_message_is_answered_by_links_or_an_error() {
    for (name, linker) in linkers() {
        let mut rng = stream(3, 0, Purpose::Linking, 0);
        for (queries, records) in [(numbers(4), numbers(RECORDS)), (names(4), names(RECORDS))] {
            if !linker.about().takes.fits(&queries) {
                continue;
            }
            let (mut linked, mut refused) = (0, 0);
            for _ in 0..1_000 {
                let (mut querier, mut data_holder) = (linker.querier(SEED), linker.data_holder(SEED));
                let mut encoded = querier.encode(&queries).expect("sealable");
                let mut challenge = data_holder.challenge(&encoded, &records).expect("a challenge or none");
                // Changes one of the messages: queries, challenge or answer.
                let which = rng.random_range(0..if challenge.is_some() { 3 } else { 1 });
                if which == 0 {
                    encoded = mutated_keys(&encoded, &mut rng);
                }
                if let (1, Some(sent)) = (which, &mut challenge) {
                    *sent = mutated(sent, &mut rng);
                }
                let answer = match challenge.map(|challenge| querier.answer(&challenge)).transpose() {
                    Ok(answer) if which == 2 => answer.map(|answer| mutated(&answer, &mut rng)),
                    Ok(answer) => answer,
                    Err(error) => {
                        assert!(matches!(error, LinkError::Message(_)), "{name}: {error}");
                        refused += 1;
                        continue;
                    }
                };
                let task = LinkTask { answer: answer.as_ref(), ..LinkTask::new(&encoded, &records) };
                *if sound(data_holder.link(&task), &encoded, &name) { &mut linked } else { &mut refused } +=
                    1;
            }
            assert!(refused > 100, "{name}: {linked} linked, {refused} refused");
        }
    }
}

/// The linker refuses a count that the bytes contradict, before it allocates memory.
#[test]
fn sizes_that_a_message_does_not_have_are_refused() {
    for (name, linker) in linkers() {
        let (queries, records) = match linker.about().takes.fits(&numbers(1)) {
            true => (numbers(4), numbers(RECORDS)),
            false => (names(4), names(RECORDS)),
        };
        let (mut querier, mut data_holder) = (linker.querier(SEED), linker.data_holder(SEED));
        let Keys::Sealed(sent) = querier.encode(&queries).expect("sealable") else { continue };
        let answer = data_holder
            .challenge(&Keys::Sealed(sent.clone()), &records)
            .expect("one or none")
            .map(|sent| querier.answer(&sent));
        let answer = answer.transpose().expect("its own challenge");
        let bytes = || sent.bytes().to_vec();
        let longer = [bytes(), vec![0; 8]].concat();
        for wrong in [
            Sealed::new(3, 2, bytes()),
            Sealed::new(5, 2, bytes()),
            Sealed::new(usize::MAX, 2, bytes()),
            Sealed::new(1 << 61, 2, bytes()),
            Sealed::new(4, 2, longer),
            Sealed::new(4, 2, Vec::new()),
        ] {
            let wrong = Keys::Sealed(wrong);
            let task = LinkTask { answer: answer.as_ref(), ..LinkTask::new(&wrong, &records) };
            let error = data_holder.link(&task).expect_err("refused");
            assert!(matches!(error, LinkError::Message(_)), "{name}: {error}");
        }
        // A message for another kind of linker, and a missing answer.
        let error =
            data_holder.link(&LinkTask { answer: answer.as_ref(), ..LinkTask::new(&queries, &records) });
        assert!(matches!(error, Err(LinkError::Message(_))), "{name}: {error:?}");
        let encoded = Keys::Sealed(sent.clone());
        let without = data_holder.link(&LinkTask::new(&encoded, &records));
        assert_eq!(without.is_err(), answer.is_some(), "{name}: {without:?}");
    }
}
