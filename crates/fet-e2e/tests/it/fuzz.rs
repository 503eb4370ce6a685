//! Short campaign in one process: readers accept valid inputs, earlier faults do not return, and a few
//! hundred damaged inputs cause no faults.

use fet_e2e::fuzz::campaign::run_case;
use fet_e2e::fuzz::{ReaderOutcome, readers, unclear};

#[test]
fn accepts_valid_inputs() {
    for reader in readers::ALL {
        let sound = (reader.sound)();
        assert!(!sound.is_empty(), "{} has inputs", reader.name);
        for (number, input) in sound.iter().enumerate() {
            let outcome = (reader.read)(input);
            assert_eq!(
                outcome,
                ReaderOutcome::Accepted,
                "{} {number}: {}",
                reader.name,
                input.escape_ascii()
            );
        }
    }
}

#[test]
fn reads_the_corpus_correctly() {
    for reader in readers::ALL {
        for (path, input) in reader.found() {
            assert_eq!(run_case(reader, &input).1, None, "{}", path.display());
        }
    }
}

#[test]
fn damaged_inputs_cause_no_faults() {
    for reader in readers::ALL {
        let beginnings = reader.initial_inputs();
        let mut refused = 0;
        for number in 0..400 {
            let input = reader.case(&beginnings, 7, number);
            let (outcome, fault) = run_case(reader, &input);
            assert_eq!(fault, None, "{} {number}: {}", reader.name, input.escape_ascii());
            refused += usize::from(matches!(outcome, Some(ReaderOutcome::Refused(_))));
        }
        assert!(refused > 100, "{}: only {refused} of 400 changes do damage", reader.name);
    }
}

#[test]
fn detects_internal_words_in_messages() {
    assert_eq!(unclear("wanted: expected usize"), Some("usize"));
    assert_eq!(unclear("invalid type: string"), Some("invalid type"));
    assert_eq!(unclear(" "), Some("it is empty"));
    assert_eq!(unclear("`train.epochs` must be a whole number; it is \"x\""), None);
}
