//! Tests the refusals of a party: different terms, senseless requests, and requests that its request
//! validator does not find on the schedule.

use std::sync::{Arc, Mutex};

use fet_core::data::Task;
use fet_core::message::{
    Backward, Block, Forward, LoadParameters, PublicKeys, Reply, Request, Round, Saved, ShareParameters,
    SignedKey, Terms,
};
use fet_core::parameters::Parameters;
use fet_core::party::{Failure, Party};
use fet_federation::secondary::{PartyConfig, Secondary};
use fet_federation::simulation::ObservedParty;
use fet_federation::trainer::Trainer;
use fet_privacy::identity::Identity;

use crate::support::{
    experiment, flex, losses, party_config, silent_party, square, square_of, watched, with_copies,
};

const SECURE: &str = "aggregator.kind=secure-average";

/// Returns a party that has joined and linked, and the trainer of its run.
fn party(sets: &[&str]) -> (Trainer, Vec<ObservedParty>) {
    crate::support::open(&experiment(sets), square(100, Task::Regression), &flex())
}

fn own(sets: &[&str]) -> PartyConfig {
    party_config(&experiment(sets), square(100, Task::Regression).secondaries.swap_remove(0), 1, 2)
}

fn terms(sets: &[&str]) -> Terms {
    crate::support::terms(&experiment(sets))
}

/// A linker sends sealed keys; a party whose own table contains them reports an error.
#[test]
fn refuses_to_join_with_a_table_of_sealed_keys() {
    let table = own(&[]).table;
    let keys = fet_core::data::Sealed::new(table.rows(), 2, vec![0; 2 * table.rows()]);
    let table = fet_core::data::PartyTable { keys: fet_core::data::Keys::Sealed(keys), ..table };
    let heard = Arc::new(Mutex::new(Vec::<String>::new()));
    let tell: fet_federation::secondary::WarnOperator = {
        let heard = Arc::clone(&heard);
        Arc::new(move |warning| heard.lock().expect("no panic").push(warning))
    };
    let mut party = Secondary::new(PartyConfig { table, tell, ..own(&[]) });
    let error = party.ask(Request::Join(terms(&[]))).expect_err("refused").to_string();
    assert!(error.contains("its operator has the details"), "{error}");
    let heard = heard.lock().expect("no panic").concat();
    assert!(heard.contains("first") && heard.contains("numbers or texts"), "{heard}");
}

/// A party refuses different terms by name, with both values, and can still join a run with its own terms.
#[test]
fn refuses_different_terms_with_both_values() {
    let mut secondary = Secondary::new(own(&[]));
    let refuse = |party: &mut Secondary, terms: Terms, parts: &[&str]| {
        let error = party.ask(Request::Join(terms)).expect_err("refused").to_string();
        for part in parts {
            assert!(error.contains(part), "{part} in {error}");
        }
    };
    let error = secondary.ask(Request::MakeKey).expect_err("refused").to_string();
    assert!(error.contains("not joined"), "{error}");
    refuse(&mut secondary, Terms { protocol: 9, ..terms(&[]) }, &["protocol", "primary has 9", "has 8"]);
    refuse(&mut secondary, Terms { results: 1, ..terms(&[]) }, &["results", "primary has 1"]);
    refuse(&mut secondary, Terms { name: "other".into(), ..terms(&[]) }, &["name", "\"other\"", "\"first\""]);
    let other = terms(&["method.hidden=32"]);
    refuse(&mut secondary, other, &["method.hidden", "primary has 32", "party has 16"]);
    let other = terms(&["privacy.kind=gaussian"]);
    refuse(&mut secondary, other, &["privacy.kind", "\"gaussian\"", "\"none\""]);
    refuse(&mut secondary, terms(&["seed=3"]), &["seed", "primary has 3", "party has 0"]);
    refuse(&mut secondary, Terms { settings: "[".into(), ..terms(&[]) }, &["settings"]);
    refuse(&mut secondary, Terms { settings_hash: [0; 32], ..terms(&[]) }, &["settings_hash"]);
    refuse(&mut secondary, Terms { number: 0, ..terms(&[]) }, &["number", "1 to 2", "it is 0"]);
    refuse(&mut secondary, Terms { number: 3, ..terms(&[]) }, &["number", "it is 3"]);
    refuse(&mut secondary, Terms { rows: 3, ..terms(&[]) }, &["at least 10 rows"]);
    refuse(&mut secondary, Terms { rows: usize::MAX, ..terms(&[]) }, &["rows", "at most"]);
    refuse(&mut secondary, Terms { parties: usize::MAX, ..terms(&[]) }, &["parties", "1 to 16384"]);
    refuse(&mut secondary, Terms { parties: 0, ..terms(&[]) }, &["parties", "it is 0"]);
    // Each party chooses its form of computation.
    let joined = secondary.ask(Request::Join(terms(&["train.kernels=tensor", "train.recompute=true"])));
    assert!(matches!(joined, Ok(Reply::Joined(_))), "{joined:?}");
    refuse(&mut secondary, terms(&[]), &["joined a run already"]);
}

/// The count of linked rows, which the party's operator sees, reaches the number of the primary's rows.
#[test]
fn counts_the_rows_that_it_has_linked() {
    assert!(Secondary::new(own(&[])).link_count().is_none());
    for kind in ["nearest", "hnsw", "random"] {
        let (_, parties) = party(&[&format!("linker.kind={kind}")]);
        for party in &parties {
            let count = party.lock().link_count().expect("it has joined");
            assert_eq!(count.rows(), (100, 100), "{kind}");
        }
    }
}

/// The party answers or refuses any request of the primary; it does not panic.
#[test]
fn refuses_senseless_requests_with_a_reason() {
    let (trainer, _) = party(&[]);
    // Step 7 of the run, in its second or third epoch.
    let schedule = trainer.schedule();
    let batches = schedule.batches(7 / schedule.steps());
    let scheduled: Vec<u32> =
        batches.get(7 % schedule.steps()).expect("a batch").iter().map(|&row| row as u32).collect();
    let count = scheduled.len();
    let forward = |rows: &[u32], active: &[u32], attempt| {
        let round = Round::Train { step: 7 };
        Request::Forward(Forward { round, rows: rows.to_vec(), active: active.to_vec(), attempt })
    };
    let backward = |step, shape: [usize; 3], learning_rate| {
        let gradient = Block::new(shape, vec![0.0; shape.iter().product()]).expect("it fills");
        Request::Backward(Backward { round: Round::Train { step }, gradient, learning_rate })
    };
    let share = |attempt| {
        let round = Round::Average { epoch: 0 };
        Request::ShareParameters(ShareParameters { round, active: vec![0, 1], attempt })
    };
    let load = |parameters| {
        Request::LoadParameters(LoadParameters { round: Round::Average { epoch: 0 }, parameters })
    };
    let other = |name: &str| {
        let mut parameters = Parameters::default();
        parameters.push(name, &[1], &[0.0]);
        parameters
    };
    let check = |sets: &[&str], requests: &[Request], parts: &[&str]| {
        let (_trainer, mut parties) = party(sets);
        let mut last = Ok(Reply::Done);
        for request in requests {
            last = parties[0].ask(request.clone());
        }
        let error = last.expect_err("refused").to_string();
        for part in parts {
            assert!(error.contains(part), "{requests:?}: {part} in {error}");
        }
    };
    check(&[], &[forward(&[100], &[0, 1], None)], &["rows", "below 100", "it is 100"]);
    check(&[], &[forward(&[u32::MAX], &[0, 1], None)], &["rows"]);
    check(&[], &[forward(&[], &[0, 1], None)], &["rows", "0 of them"]);
    check(&[], &[forward(&[1; 101], &[0, 1], None)], &["rows", "101 of them"]);
    check(&[], &[forward(&scheduled, &[], None)], &["active"]);
    check(&[], &[forward(&scheduled, &[1], None)], &["active", "party 0"]);
    check(&[], &[forward(&scheduled, &[1, 0], None)], &["active", "ascending"]);
    check(&[], &[forward(&scheduled, &[0, 0], None)], &["active"]);
    check(&[], &[forward(&scheduled, &[0, 9], None)], &["active", "below 2"]);
    check(&[], &[forward(&scheduled, &[0, 1], Some(0))], &["attempt"]);
    check(&[SECURE], &[forward(&scheduled, &[0, 1], None)], &["attempt"]);
    check(&[SECURE], &[forward(&scheduled, &[0], Some(0))], &["over one party"]);
    let shape = [count, 4, 16];
    check(&[], &[backward(7, shape, 0.1)], &["training step 8", "no training representation"]);
    let asked = forward(&scheduled, &[0, 1], None);
    check(&[], &[asked.clone(), backward(8, shape, 0.1)], &["training step 9", "no training representation"]);
    let (right, wrong) = (format!("{shape:?}"), format!("[{count}, 4, 15]"));
    check(&[], &[asked.clone(), backward(7, [count, 4, 15], 0.1)], &["gradient", &right, &wrong]);
    check(&[], &[asked.clone(), backward(7, shape, f64::NAN)], &["learning_rate", "NaN"]);
    let twice = backward(7, shape, 0.1);
    check(&[], &[asked.clone(), twice.clone(), twice], &["no training representation"]);
    check(&[], &[share(None)], &["averages none"]);
    check(&[], &[load(other("chain.blocks.0.attention.output.bias"))], &["averages none"]);
    let averaged = ["method.pe_average_every=1"];
    check(&averaged, &[share(Some(0))], &["attempt"]);
    check(&averaged, &[load(other("embedding.input.bias"))], &["must be those that the method averages"]);
    check(&averaged, &[load(Parameters::default())], &["must be those that the method averages"]);
    check(&[], &[Request::Load(Saved { epoch: 3, tag: [0; 32] })], &["no saved state of epoch 3"]);
    check(&[], &[Request::Answer(fet_core::data::Sealed::new(1, 1, Vec::new()))], &["without a challenge"]);
    let keys = |parties: &[u32], count: usize| {
        let key = SignedKey { key: [9; 32], age: Default::default(), signature: vec![0; 64] };
        Request::AgreeOnKeys(PublicKeys { parties: parties.to_vec(), keys: vec![key; count] })
    };
    check(&[], &[keys(&[0, 1], 2)], &["before the parties agreed on keys"]);
    check(&[], &[Request::MakeKey, keys(&[0, 1], 2)], &["party 1", "not signed"]);
    check(&[SECURE], &[keys(&[0, 1], 3)], &["keys", "2 parties"]);
    check(&[SECURE], &[keys(&[0, 7], 2)], &["parties", "below 2"]);
    check(&[SECURE], &[keys(&[1], 1)], &["parties", "party 0"]);
    check(&[SECURE], &[keys(&[0, 1], 2)], &["already agreed on keys"]);
    check(&[SECURE], &[Request::MakeKey], &["already agreed on keys"]);
    let far = Round::Validation { epoch: u32::MAX, batch: u32::MAX };
    let request = Request::Forward(Forward { round: far, rows: vec![1], active: vec![0, 1], attempt: None });
    check(&[], &[request], &["round", "4294967296"]);
    check(&[SECURE], &[forward(&scheduled, &[0, 1], Some(u32::MAX))], &["round", "attempt"]);
    check(&[], &[backward(u64::MAX, [1, 4, 16], 0.1)], &["no training representation"]);
    let nan = Block::new(shape, vec![f32::NAN; 64 * count]).expect("it fills");
    let round = Round::Train { step: 7 };
    let nan = Request::Backward(Backward { round, gradient: nan, learning_rate: 0.1 });
    check(&[], &[asked, nan], &["gradient", "finite"]);
    let link = |rows: usize| {
        let keys = fet_core::data::Matrix::new(2, vec![0.5; 2 * rows]).into();
        Request::Link(fet_core::message::LinkKeys { keys })
    };
    check(&[], &[link(99)], &["keys", "100 records", "it is 99"]);
    check(&[], &[link(100)], &["links once"]);
}

/// The request validator accepts only the schedule, in order, once.
#[test]
fn party_answers_the_schedule_only_once() {
    let schedule_of = |sets: &[&str]| party(sets).0.schedule().clone();
    let schedule = schedule_of(&[]);
    let step = |number: u64, attempt| {
        let batches = schedule.batches(number as usize / schedule.steps());
        let rows = batches
            .get(number as usize % schedule.steps())
            .expect("a batch")
            .iter()
            .map(|&row| row as u32)
            .collect();
        Forward { round: Round::Train { step: number }, rows, active: vec![0, 1], attempt }
    };
    let ask = |party: &mut ObservedParty, message: &Forward| party.ask(Request::Forward(message.clone()));
    let refused = |answer: Result<Reply, Failure>, parts: &[&str]| {
        let error = answer.expect_err("refused").to_string();
        parts.iter().for_each(|part| assert!(error.contains(part), "{part} in {error}"));
    };

    // The same request gets the same reply; any other request for this round, or for an earlier round, gets
    // no reply.
    let (_trainer, mut parties) = party(&[]);
    let party_one = &mut parties[0];
    let first = ask(party_one, &step(3, None)).expect("it is scheduled");
    assert_eq!(ask(party_one, &step(3, None)).expect("the same"), first);
    refused(ask(party_one, &step(2, None)), &["round", "answered once"]);
    let mut other = step(4, None);
    other.rows.swap(0, 1);
    refused(ask(party_one, &other), &["rows", "schedule", "training step 5"]);
    other.rows.truncate(1);
    refused(ask(party_one, &other), &["rows", "1 others"]);
    let far = Forward { round: Round::Train { step: 1 << 39 }, ..step(4, None) };
    refused(ask(party_one, &far), &["round", "epochs"]);
    let probe = Forward { round: Round::Probe { batch: 0 }, ..step(4, None) };
    refused(ask(party_one, &probe), &["policy.probes"]);
    let once = Forward { round: Round::Once { batch: 0 }, ..step(4, None) };
    refused(ask(party_one, &once), &["released once only if"]);
    let saved = party_one.ask(Request::Load(Saved { epoch: 1, tag: [0; 32] }));
    refused(saved, &["before the first release"]);
    // A party that one round leaves out does not return in a later round.
    let alone = Forward { active: vec![0], ..step(5, None) };
    ask(party_one, &alone).expect("the other vanished");
    refused(ask(party_one, &step(6, None)), &["active", "party 1", "left it out"]);

    // Of several attempts at a sum, the party unmasks only the last.
    let (_trainer, mut parties) = crate::support::open(&experiment(&[SECURE]), square_of(100, 3), &flex());
    let party_one = &mut parties[0];
    let attempt = |number: u32, active: &[u32]| Forward { active: active.to_vec(), ..step(0, Some(number)) };
    let open = |attempt: u32| {
        Request::Unmask(fet_core::message::Unmask { round: Round::Train { step: 0 }, attempt })
    };
    let reveal = |party: u32, attempt: u32| {
        Request::Reveal(fet_core::message::Reveal { round: Round::Train { step: 0 }, attempt, party })
    };
    refused(party_one.ask(open(0)), &["attempt 0", "not the last"]);
    refused(ask(party_one, &attempt(1, &[0, 1, 2])), &["attempt", "must be 0"]);
    let whole = ask(party_one, &attempt(0, &[0, 1, 2])).expect("the first attempt");
    refused(party_one.ask(reveal(1, 0)), &["attempt 0"]);
    refused(ask(party_one, &attempt(1, &[0, 1, 2])), &["active", "fewer than in the previous attempt"]);
    let less = ask(party_one, &attempt(1, &[0, 2])).expect("party 1 vanished");
    assert_ne!(whole, less);
    refused(party_one.ask(open(0)), &["attempt 0", "not the last"]);
    refused(party_one.ask(reveal(2, 1)), &["attempt 1"]);
    let unmasking = party_one.ask(open(1)).expect("the last attempt");
    assert_eq!(party_one.ask(open(1)).expect("the same"), unmasking);
    refused(ask(party_one, &attempt(2, &[0, 2])), &["round", "answered once"]);
    for (party, number) in [(0, 1), (1, 1), (2, 0)] {
        refused(party_one.ask(reveal(party, number)), &["attempt"]);
    }
    assert!(matches!(party_one.ask(reveal(2, 1)), Ok(Reply::Share(_))), "it took part and vanished");
    let next = Forward { active: vec![0, 2], ..step(1, Some(0)) };
    refused(ask(party_one, &next), &["active", "party 2"]);
    let share = ShareParameters { round: Round::Train { step: 1 }, active: vec![0, 2], attempt: Some(0) };
    refused(party_one.ask(Request::ShareParameters(share)), &["averages none"]);

    // Parties send parameters only when the method averages them.
    let (_trainer, mut parties) = party(&["method.pe_average_every=2"]);
    let share =
        |round| Request::ShareParameters(ShareParameters { round, active: vec![0, 1], attempt: None });
    for round in
        [Round::Train { step: 1 }, Round::Average { epoch: 0 }, Round::Validation { epoch: 1, batch: 0 }]
    {
        refused(parties[0].ask(share(round)), &["must be an averaging"]);
    }
    assert!(matches!(parties[0].ask(share(Round::Average { epoch: 1 })), Ok(Reply::Parameters(_))));

    // For the attempt that a party has unmasked itself, the party gives its key shares of all dropped
    // parties, and refuses them for other attempts. It answers no attempt with fewer than three of four
    // parties, for any dropped parties.
    let (_trainer, mut parties) = crate::support::open(&experiment(&[SECURE]), square_of(100, 4), &flex());
    let party_one = &mut parties[0];
    ask(party_one, &attempt(0, &[0, 1, 2, 3])).expect("the first attempt");
    refused(ask(party_one, &attempt(1, &[0, 1])), &["2 parties are too few", "at least 3 are needed"]);
    party_one.ask(open(0)).expect("it was sent");
    let share = |party: &mut ObservedParty, of| match party.ask(reveal(of, 0)) {
        Ok(Reply::Share(share)) => share,
        other => panic!("{other:?}"),
    };
    let (second, third) = (share(party_one, 2), share(party_one, 1));
    assert_ne!(second, third);
    assert_eq!(share(party_one, 2), second);
    refused(ask(party_one, &Forward { active: vec![0, 3], ..step(1, Some(0)) }), &["too few"]);
}

/// A party that drops out between its message and its unmasking stays in that sum, which the others unmask,
/// but in no later sum.
#[test]
fn party_lost_during_unmasking_stays_in_the_sum() {
    let data = with_copies(square(100, Task::Regression), &["third", "fourth"]);
    let experiment = experiment(&[SECURE, "train.epochs=1"]);
    let run = |lose: bool| {
        let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
            let lost = |request: &Request| matches!(request, Request::Unmask(open) if open.round >= (Round::Train { step: 2 }));
            if lose && index == 1 { silent_party(party, lost) } else { Box::new(party) }
        };
        let (mut trainer, _parties) = watched(&experiment, data.clone(), &flex(), wrap).expect("a trainer");
        let losses = losses(&mut trainer);
        let warned = |warning: &&String| warning.contains("dropped out") && warning.contains("\"none\"");
        assert_eq!(
            trainer.warnings().iter().filter(warned).count(),
            usize::from(lose),
            "later sums lack its part"
        );
        (losses, trainer.federation().dropped().to_vec())
    };
    let (whole, lossy) = (run(false), run(true));
    assert_eq!((whole.1, lossy.1), (vec![], vec![1]));
    // The party dropped out after its message for this step had arrived, so the sum of the step is the same.
    assert_eq!(whole.0[..3], lossy.0[..3]);
}

/// Without noise, two sums over the same rows that differ by one party reveal its part.
///
/// A party whose policy requires secure aggregation refuses such sums unless the policy allows them. All
/// other parties, and the primary, warn.
#[test]
fn refuses_or_warns_of_sums_without_noise_that_differ_by_a_party() {
    const SUMS: &str = "policy.aggregators=[\"secure-average\"]";
    const DROPOUT: &str = "method.party_dropout=0.3";
    let join = |sets: &[&str]| {
        let heard = Arc::new(Mutex::new(Vec::<String>::new()));
        let tell: fet_federation::secondary::WarnOperator = {
            let heard = Arc::clone(&heard);
            Arc::new(move |warning| heard.lock().expect("no panic").push(warning))
        };
        let roster = (1..=4).map(|party| Identity::from_secret([party; 32]).public()).collect();
        let answer = Secondary::new(PartyConfig { roster, tell, ..own(sets) })
            .ask(Request::Join(Terms { parties: 4, ..terms(sets) }));
        let refused = answer.err().map(|error| error.to_string());
        let warned = heard.lock().expect("no panic").iter().any(|said| said.contains("party_dropout"));
        (refused, warned)
    };
    for policy in [SUMS, "policy.least_summed=3"] {
        let (refused, _) = join(&[SECURE, DROPOUT, policy]);
        let refused = refused.expect("refused");
        for part in ["`policy.differing_sums` must be true", "1 of 4 parties", "it is false"] {
            assert!(refused.contains(part), "{part} in {refused}");
        }
    }
    let either = "policy.aggregators=[\"average\", \"secure-average\"]";
    for (sets, warns) in [
        (&[SECURE, DROPOUT, SUMS, "policy.differing_sums=true"][..], true),
        (&[SECURE, DROPOUT, either], true),
        (&[SECURE, DROPOUT], true),
        (&[SECURE, SUMS], false),
        (&[DROPOUT], false),
    ] {
        assert_eq!(join(sets), (None, warns), "{sets:?}");
    }
    let (refused, warned) = join(&[SECURE, DROPOUT, SUMS, "privacy.kind=discrete-gaussian"]);
    assert!(!warned && refused.is_none(), "noise protects: {refused:?}");
    // The primary's report also contains the warning.
    for (sets, expected) in [(&[SECURE, DROPOUT][..], 1), (&[SECURE], 0), (&[DROPOUT], 0)] {
        let (trainer, _parties) = crate::support::open(&experiment(sets), square_of(100, 4), &flex());
        let warned = |warning: &&String| warning.contains("`method.party_dropout` leaves 1 of 4");
        assert_eq!(trainer.warnings().iter().filter(warned).count(), expected, "{sets:?}");
    }
    // A sum over fewer parties than scheduled also counts as such a sum.
    let (trainer, mut parties) =
        crate::support::open(&experiment(&[SECURE, SUMS]), square_of(100, 3), &flex());
    let rows: Vec<u32> =
        trainer.schedule().batches(0).get(0).expect("a batch").iter().map(|&row| row as u32).collect();
    let mut ask = |attempt: u32, active: &[u32]| {
        let (round, active) = (Round::Train { step: 0 }, active.to_vec());
        parties[0].ask(Request::Forward(Forward {
            round,
            rows: rows.clone(),
            active,
            attempt: Some(attempt),
        }))
    };
    ask(0, &[0, 1, 2]).expect("all that are scheduled");
    let refused = ask(1, &[0, 2]).expect_err("refused").to_string();
    assert!(refused.contains("policy.differing_sums") && refused.contains("2 of 3"), "{refused}");
}

/// A relay cannot interpose itself: the parties refuse a key that the relay signs itself, or that was signed
/// for another party.
#[test]
fn every_party_refuses_an_unsigned_key() {
    let (_trainer, parties) = party(&[SECURE]);
    drop(parties);
    let join = |number: usize| {
        let mut own = own(&[SECURE]);
        own.identity = Identity::from_secret([number as u8; 32]);
        let name = own.table.name.clone();
        let mut party = Secondary::new(own);
        let terms = Terms { number, name, ..terms(&[SECURE]) };
        party.ask(Request::Join(terms)).expect("its own terms");
        party
    };
    let key = |party: &mut Secondary| match party.ask(Request::MakeKey).expect("a key") {
        Reply::Key(key) => key,
        other => panic!("{other:?}"),
    };
    let agree = |keys: [&SignedKey; 2]| {
        Request::AgreeOnKeys(PublicKeys { parties: vec![0, 1], keys: keys.map(Clone::clone).to_vec() })
    };
    let (mut first, mut second) = (join(1), join(2));
    let (one, two) = (key(&mut first), key(&mut second));
    // The relay uses its own key, with its own signature or with the party's signature for another key.
    let mut relay = join(2);
    let own_key = key(&mut relay);
    let forged = SignedKey { signature: two.signature.clone(), ..own_key.clone() };
    let moved = SignedKey { key: one.key, ..two.clone() };
    for (wrong, why) in [(&forged, "another key"), (&moved, "another party's key"), (&one, "another party")] {
        let error = first.ask(agree([&one, wrong])).expect_err(why).to_string();
        assert!(error.contains("party 2 is not signed"), "{why}: {error}");
    }
    let error = second.ask(agree([&two, &two])).expect_err("not party 1's").to_string();
    assert!(error.contains("party 1 is not signed"), "{error}");
    assert!(matches!(first.ask(agree([&one, &two])), Ok(Reply::Agreed(_))));
}

/// The `Debug` output of a party shows none of its randomness, links and weights.
#[test]
fn debug_shows_no_values() {
    let (trainer, parties) = party(&[]);
    let text = format!("{:?} {:?}", parties[0], trainer.federation());
    assert!(!text.contains("0.") && text.len() < 300, "{text}");
    let _ = trainer.split();
    let seed = format!("{:?}", own(&[]).seed);
    assert_eq!(seed, "OwnSeed");
}

/// Returns the answer of a party with this policy to a private run, and the warnings to its operator.
fn join(sets: &[&str]) -> (Result<Reply, Failure>, String) {
    let sets =
        [&["privacy.kind=discrete-gaussian", "privacy.noise=200", "privacy.neighbouring=record"], sets]
            .concat();
    let heard = Arc::new(Mutex::new(Vec::<String>::new()));
    let tell: fet_federation::secondary::WarnOperator = {
        let heard = Arc::clone(&heard);
        Arc::new(move |warning| heard.lock().expect("no panic").push(warning))
    };
    let answer = Secondary::new(PartyConfig { tell, ..own(&sets) }).ask(Request::Join(terms(&sets)));
    let heard = heard.lock().expect("no panic").join("\n");
    (answer, heard)
}

/// Without a limit on ε the party warns its operator; with a limit, it refuses the run until its policy names
/// the term.
#[test]
fn limit_on_epsilon_refuses_weakening_terms_unless_the_policy_names_them() {
    let limit = "policy.most_epsilon=8";
    for (run, setting, value, list) in [
        (&["privacy.learning=assumed"][..], "privacy.learning", "\"assumed\"", "learning"),
        (&["privacy.neighbouring=add-remove"], "privacy.neighbouring", "\"add-remove\"", "neighbouring"),
        // Another kind has different settings.
        (
            &["privacy.kind=gaussian", "privacy.noise=200", "privacy.neighbouring=record"],
            "privacy.kind",
            "\"gaussian\"",
            "mechanisms",
        ),
    ] {
        let field = format!("`policy.{list}`");
        let (answer, heard) = join(run);
        assert!(answer.is_ok(), "{run:?}: {answer:?}");
        for part in ["first: ", setting, value, &field, "policy.most_epsilon"] {
            assert!(heard.contains(part), "{part} in {heard:?}");
        }
        let error = join(&[run, &[limit]].concat()).0.expect_err("refused").to_string();
        for part in
            [field.as_str(), setting, value, "`policy.most_epsilon` (8) limits too little", "it is []"]
        {
            assert!(error.contains(part), "{part} in {error}");
        }
        let named = format!("policy.{list}=[{value}]");
        let (answer, heard) = join(&[run, &[limit, &named]].concat());
        assert!(answer.is_ok() && heard.is_empty(), "{run:?}: {answer:?}, {heard}");
        let (answer, heard) = join(&[run, &[&named]].concat());
        assert!(answer.is_ok() && heard.is_empty(), "{run:?}: {answer:?}, {heard}");
    }
    // The strongest terms need no name in the policy; a list without them refuses them.
    for relation in ["record", "replace"] {
        let (answer, heard) = join(&[limit, &format!("privacy.neighbouring={relation}")]);
        assert!(answer.is_ok() && heard.is_empty(), "{relation}: {answer:?}, {heard}");
    }
    for list in ["policy.learning=[\"frozen\"]", "policy.neighbouring=[\"replace\"]"] {
        let error = join(&[list]).0.expect_err("refused").to_string();
        assert!(error.contains("must name") && error.contains("must have another value"), "{error}");
        let error = join(&[list, "privacy.kind=none"]).0.expect_err("refused").to_string();
        assert!(error.contains("without a guarantee (`privacy.kind` is \"none\")"), "{error}");
    }
}

/// An ε means nothing without δ: at δ = 0.95 every run has a small ε.
#[test]
fn the_policy_limits_epsilon_at_its_own_delta() {
    let run = ["privacy.noise=40", "privacy.delta=0.95"];
    let check = |policy: &[&str]| join(&[&run, policy].concat());
    let (answer, heard) = check(&[]);
    assert!(answer.is_ok(), "{answer:?}");
    for part in ["`privacy.delta` is 9.5e-1", "`policy.most_delta` (1e-5)"] {
        assert!(heard.contains(part), "{part} in {heard}");
    }
    let error = check(&["policy.most_epsilon=0.5"]).0.expect_err("refused").to_string();
    for part in ["`policy.most_epsilon`", "at δ = 1e-5, `policy.most_delta`", "it is 0.5"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let (answer, _) = check(&["policy.most_epsilon=0.5", "policy.most_delta=0.95"]);
    assert!(answer.is_ok(), "its own δ: {answer:?}");
    // The party accepts a run with a smaller δ.
    let (answer, _) = join(&["privacy.noise=200", "privacy.delta=1e-12", "policy.most_epsilon=3"]);
    assert!(answer.is_ok(), "{answer:?}");
}
