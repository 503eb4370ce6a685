//! The party boundary: nothing but messages crosses it, whatever a peer sends, and a run does not ask again whom it lost.
//!
//! Long, because its tables list every hostile reply and request beside the parties that send them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fet_core::data::Task;
use fet_core::message::{
    Agreed, Answer, Backups, Backward, Block, Forward, Joined, LARGEST_FRAME, Linked, LoadParameters, Masked,
    PublicKeys, Reply, Request, Round, Saved, ShareParameters, SignedKey, Terms, Words, decode, encode,
};
use fet_core::parameters::Parameters;
use fet_core::party::{Failure, Party, Refusal};
use fet_core::privacy::Tally;
use fet_privacy::identity::Identity;
use fet_train::checkpoint;
use fet_train::prepare::divide;
use fet_train::secondary::{Own, Secondary, Store};
use fet_train::simulation::{Simulation, Watched};
use fet_train::trainer::Trainer;

use crate::support::{Vanishing, experiment, flex, losses, model, square, square_of, trainer, watched};

const SECURE: &str = "aggregator.kind=secure-average";
const NOISE: &str = "privacy.kind=discrete-gaussian";

/// Every request and answer of a party, as bytes.
type Transcript = Arc<Mutex<Vec<(Vec<u8>, Vec<u8>)>>>;

/// A party whose messages are written down.
struct Recorded<P> {
    party: P,
    transcript: Transcript,
}

impl<P: Party> Party for Recorded<P> {
    fn name(&self) -> &str {
        self.party.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        let asked = encode(&request).expect("a frame");
        let reply = self.party.ask(request)?;
        let answered = encode::<Answer>(&Ok(reply.clone())).expect("a frame");
        self.transcript.lock().expect("no panic").push((asked, answered));
        Ok(reply)
    }
}

/// A party of which nothing is left but a transcript: it answers what was answered, if the same is asked.
struct Replayed {
    name: String,
    rest: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
}

impl Party for Replayed {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        let (asked, answered) = self.rest.next().ok_or(Failure::Gone)?;
        if encode(&request)? != asked {
            return Err(Refusal::new(format!("{request:?} was not asked")).into());
        }
        Ok(decode::<Answer>(&answered, LARGEST_FRAME)??)
    }
}

/// The whole report but for the time that it took.
fn report(trainer: &Trainer, experiment: &fet_core::experiment::Experiment) -> serde_json::Value {
    let folder = std::path::Path::new("none");
    let made_from = fet::provenance::Provenance::of(experiment, folder).expect("no files");
    let report = fet::run::report_of(trainer, experiment, made_from, Default::default()).expect("a report");
    serde_json::to_value(report).expect("plain data")
}

/// What the primary computes follows from the messages and from its own table, and from nothing else: the report of a
/// run is the same where, of the secondaries, nothing but the transcript is left.
#[test]
fn a_report_follows_from_the_transcript_and_the_primarys_own_data() {
    for sets in [
        &["method.party_dropout=0.5"][..],
        &["method.pe_average_every=1", "linker.kind=rotation", "linker.neighbours=4"],
        &["method.kind=fedsim"],
        &["method.kind=top1sim", "train.wire=bytes"],
        &["method.kind=gbdt-top1"],
        &["aggregator.kind=similarity-weighted"],
        &[SECURE, NOISE, "method.pe_average_every=0"],
        &[SECURE, NOISE, "privacy.learning=frozen", "privacy.max_occurrences=2"],
    ] {
        let experiment = experiment(&[&["train.epochs=2"], sets].concat());
        let data = square(120, Task::Regression);
        let transcripts: [Transcript; 2] = Default::default();
        let wrap = |index: usize, party: Watched| -> Box<dyn Party> {
            Box::new(Recorded { party, transcript: Arc::clone(&transcripts[index]) })
        };
        let (mut first, parties) = watched(&experiment, data.clone(), &flex(), wrap).expect("a trainer");
        while !first.is_done() {
            losses(&mut first);
        }
        let names: Vec<String> = parties.iter().map(|party| party.name().to_string()).collect();
        drop(parties);
        let replayed = names.into_iter().zip(&transcripts).map(|(name, transcript)| -> Box<dyn Party> {
            let rest = std::mem::take(&mut *transcript.lock().expect("no panic")).into_iter();
            Box::new(Replayed { name, rest })
        });
        let (primary, _) = divide(data);
        let machine = fet::run::machine(&flex());
        let mut second =
            Trainer::new(&experiment, primary, replayed.collect(), Vec::new(), &machine).expect("a trainer");
        while !second.is_done() {
            losses(&mut second);
        }
        assert_eq!(report(&first, &experiment), report(&second, &experiment), "{sets:?}");
        assert_eq!(first.best(), second.best(), "{sets:?}");
    }
}

/// As bytes and handed over: the same models, bit for bit, and the same report.
#[test]
fn messages_that_become_bytes_change_nothing() {
    for sets in [
        &[][..],
        &["method.party_dropout=0.5", "method.pe_average_every=1"],
        &["method.kind=fedsim"],
        &["method.kind=top1sim"],
        &["method.kind=gbdt-top1"],
        &["linker.kind=psi", "linker.neighbours=4"],
        &["aggregator.kind=concat"],
        &[SECURE, "method.pe_average_every=1"],
        &[SECURE, NOISE],
        &["privacy.kind=gaussian"],
    ] {
        let run = |wire: &str| {
            let experiment = experiment(&[sets, &["train.epochs=2", &format!("train.wire={wire}")]].concat());
            let machine = fet::run::machine(&flex());
            let simulation = Simulation::new(&experiment, &machine);
            let wrap = |_: usize, party: Watched| simulation.wired(party);
            let (mut trainer, parties) =
                watched(&experiment, square(120, Task::Regression), &flex(), wrap).expect("a trainer");
            while !trainer.is_done() {
                losses(&mut trainer);
            }
            let mut report = report(&trainer, &experiment);
            report["experiment"]["train"]["wire"] = "either".into();
            (report, model(&trainer, &parties))
        };
        assert_eq!(run("direct"), run("bytes"), "{sets:?}");
    }
}

/// A party that counts how often it is asked anything.
struct Counted<P>(P, Arc<AtomicUsize>);

impl<P: Party> Party for Counted<P> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.ask(request)
    }
}

#[test]
fn a_resumed_run_does_not_ask_again_whom_it_lost_and_costs_the_same() {
    let experiment = experiment(&[SECURE, NOISE, "privacy.noise=50", "train.epochs=3"]);
    let machine = fet::run::machine(&flex());
    let mut data = square(200, Task::Regression);
    let mut third = data.secondaries[0].clone();
    third.name = "third".to_string();
    data.secondaries.push(third);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let identity = serde_json::json!({"name": "test"});
    // Party 2 is gone from the third step on; `asked` counts what is asked of it.
    let made = |out: &str, gone: Vec<usize>, from: u64| {
        let folder = folder.path().join(out);
        let simulation = Simulation { folder: Some(&folder), ..Simulation::new(&experiment, &machine) };
        let (primary, tables) = divide(data.clone());
        let asked = Arc::new(AtomicUsize::new(0));
        let wrap = |(index, party): (usize, Secondary)| -> Box<dyn Party> {
            if index != 1 {
                return Box::new(party);
            }
            let party = Vanishing { party, from: Arc::new(AtomicU64::new(from)) };
            Box::new(Counted(party, Arc::clone(&asked)))
        };
        let parties = simulation.secondaries(tables).expect("parties").into_iter().enumerate().map(wrap);
        let trainer = Trainer::new(&experiment, primary, parties.collect(), gone, &machine);
        (trainer.expect("a trainer"), asked)
    };
    let (mut whole, _) = made("whole", Vec::new(), 2);
    while !whole.is_done() {
        losses(&mut whole);
    }
    let (mut broken, _) = made("broken", Vec::new(), 2);
    losses(&mut broken);
    let bytes = checkpoint::save(&mut broken, &identity, 0.0).expect("saved");
    drop(broken);
    let gone = checkpoint::gone(&bytes).expect("sound");
    assert_eq!(gone, [1]);
    // The party is there again, and would answer.
    let (mut resumed, asked) = made("broken", gone, u64::MAX);
    checkpoint::load(&mut resumed, &identity, &bytes).expect("its own checkpoint");
    while !resumed.is_done() {
        losses(&mut resumed);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0, "whom the run lost is not asked again");
    assert_eq!(resumed.progress(), whole.progress());
    let epsilon = |trainer: &Trainer| trainer.spent().and_then(|spent| spent.epsilon).expect("bounded");
    assert_eq!(epsilon(&resumed), epsilon(&whole));
    assert_eq!(resumed.best(), whole.best());
}

/// Where parties are lost outside of training, the run goes on without them, and the account knows.
#[test]
fn parties_lost_anywhere_are_left_out_from_then_on() {
    struct Loses<P>(P, fn(Round) -> bool, bool);
    impl<P: Party> Party for Loses<P> {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
            self.2 |= request.round().is_some_and(self.1);
            if self.2 { Err(Failure::Gone) } else { self.0.ask(request) }
        }
    }
    let mut data = square(200, Task::Regression);
    for name in ["third", "fourth"] {
        let mut more = data.secondaries[0].clone();
        more.name = name.to_string();
        data.secondaries.push(more);
    }
    let check = |sets: &[&str], when: fn(Round) -> bool| {
        let experiment = experiment(&[&[SECURE, "train.epochs=2"], sets].concat());
        let wrap = |index: usize, party: Watched| -> Box<dyn Party> {
            if index == 1 { Box::new(Loses(party, when, false)) } else { Box::new(party) }
        };
        let (mut trainer, _) = watched(&experiment, data.clone(), &flex(), wrap).expect("a trainer");
        while !trainer.is_done() {
            losses(&mut trainer);
        }
        trainer.finish().expect("those that are left write their models");
        assert_eq!(trainer.progress().gone, [1], "{sets:?}");
        let all = Tally::of_all(&trainer.progress().tallies);
        all.iter().collect::<Vec<_>>()
    };
    // Five steps, a validation and a test of one batch in each of two epochs; (parties, releases).
    let all = check(&["method.pe_average_every=1"], |round| matches!(round, Round::Average { .. }));
    assert_eq!(all, [(3, 9), (4, 5)]);
    let all = check(&[NOISE], |round| matches!(round, Round::Validation { batch: 0, .. }));
    assert_eq!(all, [(3, 9), (4, 5)]);
    let frozen =
        [NOISE, "privacy.learning=frozen", "privacy.max_occurrences=2", "train.evaluation_batch_size=64"];
    let all = check(&frozen, |round| round == Round::Once { batch: 1 });
    assert_eq!(all, [(3, 3), (4, 1)]);
}

/// What a party replies in place of what it should.
type Twist = fn(&Request, Reply) -> Result<Reply, Failure>;

struct Hostile<P>(P, Twist);

impl<P: Party> Party for Hostile<P> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        let reply = self.0.ask(request.clone())?;
        (self.1)(&request, reply)
    }
}

/// Whatever a party replies, the run ends with an error that names party, message and round.
#[test]
fn a_reply_that_does_not_fit_is_an_error_that_names_party_message_and_round() {
    let check = |sets: &[&str], twist: Twist, parts: &[&str]| {
        let experiment = experiment(sets);
        let wrap = |index: usize, party: Watched| -> Box<dyn Party> {
            if index == 1 { Box::new(Hostile(party, twist)) } else { Box::new(party) }
        };
        let error = match watched(&experiment, square(100, Task::Regression), &flex(), wrap) {
            Err(error) => error.to_string(),
            Ok((mut trainer, _)) => trainer.epoch(&mut |_| true).expect_err("refused").to_string(),
        };
        // A key that is not party 2's own is refused by the first that sees it.
        let second = if parts.contains(&"not signed") { "party 2" } else { "party \"second\"" };
        for part in [&[second], parts].concat() {
            assert!(error.contains(part), "{sets:?}: {part} in {error}");
        }
    };
    let block = |shape: [usize; 3]| Block::new(shape, vec![0.0; shape.iter().product()]).expect("it fills");
    assert_eq!(block([1, 2, 3]).shape(), [1, 2, 3]);
    check(&[], |_, _| Ok(Reply::Done), &["Join", "Done"]);
    check(
        &[],
        |request, reply| if matches!(request, Request::Link(_)) { Ok(Reply::Done) } else { Ok(reply) },
        &["Link", "Done"],
    );
    check(
        &[],
        |_, reply| match reply {
            Reply::Linked(linked) => Ok(Reply::Linked(Linked { available: 0, ..linked })),
            reply => Ok(reply),
        },
        &["Link", "available", "1 to 4", "it is 0"],
    );
    check(
        &[],
        |_, reply| match reply {
            Reply::Linked(linked) => Ok(Reply::Linked(Linked { available: usize::MAX, ..linked })),
            reply => Ok(reply),
        },
        &["Link", "available"],
    );
    check(
        &["method.kind=fedsim"],
        |_, reply| match reply {
            Reply::Linked(linked) => Ok(Reply::Linked(Linked { similarities: None, ..linked })),
            reply => Ok(reply),
        },
        &["Link", "similarities", "missing"],
    );
    check(
        &[],
        |_, reply| match reply {
            Reply::Representation(_) => {
                let block = Block::new([1, 1, 1], vec![0.0]).expect("it fills");
                Ok(Reply::Representation(block))
            }
            reply => Ok(reply),
        },
        &["Forward", "training step 1", "shape", "[32, 4, 16]", "[1, 1, 1]"],
    );
    check(
        &[],
        |request, reply| match request {
            Request::Forward(message) if !message.round.is_training() => {
                Ok(Reply::Saved(Saved { epoch: 1, hash: [0; 32] }))
            }
            _ => Ok(reply),
        },
        &["Forward", "validating epoch 1", "Saved"],
    );
    check(
        &[],
        |request, reply| {
            if matches!(request, Request::Backward(_)) {
                Ok(Reply::Joined(Joined { parameters: 0 }))
            } else {
                Ok(reply)
            }
        },
        &["Backward", "training step 1", "Joined"],
    );
    check(
        &["method.pe_average_every=1"],
        |_, reply| match reply {
            Reply::Parameters(_) => Ok(Reply::Parameters(Parameters::default())),
            reply => Ok(reply),
        },
        &["ShareParameters", "averaging after epoch 1", "parameters"],
    );
    check(
        &["method.pe_average_every=1"],
        |_, reply| match reply {
            Reply::Parameters(mut parameters) => {
                parameters.split_mut().1[0] = f32::NAN;
                Ok(Reply::Parameters(parameters))
            }
            reply => Ok(reply),
        },
        &["ShareParameters", "finite"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Masked(masked) => Ok(Reply::Masked(Masked { words: vec![0; 3], ..masked })),
            reply => Ok(reply),
        },
        &["Forward", "training step 1", "words", "3 words"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Masked(masked) => Ok(Reply::Masked(Masked { bits: 8, ..masked })),
            reply => Ok(reply),
        },
        &["Forward", "words", "8 bits"],
    );
    check(
        &[SECURE, "method.pe_average_every=1"],
        |_, reply| match reply {
            Reply::MaskedParameters(_) => {
                Ok(Reply::MaskedParameters(Words { words: vec![1], commitment: [0; 32] }))
            }
            reply => Ok(reply),
        },
        &["ShareParameters", "words", "it is 1"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Key(key) => Ok(Reply::Key(SignedKey { key: [0; 32], ..key })),
            reply => Ok(reply),
        },
        &["AgreeOnKeys", "not signed"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Agreed(Agreed { backups, signature }) => {
                Ok(Reply::Agreed(Agreed { backups: Backups { sealed: vec![1], ..backups }, signature }))
            }
            reply => Ok(reply),
        },
        &["AgreeOnKeys", "sealed", "1 bytes"],
    );
    check(
        &[SECURE],
        |_, reply| if let Reply::Opening(_) = reply { Ok(Reply::Done) } else { Ok(reply) },
        &["Open", "training step 1", "Done"],
    );
    check(&[], |_, _| Err(Refusal::new("no time").into()), &["Join", "no time"]);
    check(&[], |_, _| Err(Failure::Gone), &["Join", "no longer answers"]);
}

/// A party that has joined and is linked, and its trainer's terms.
fn party(sets: &[&str]) -> (Trainer, Vec<Watched>) {
    crate::support::open(&experiment(sets), square(100, Task::Regression), &flex())
}

fn own(sets: &[&str]) -> Own {
    let machine = fet::run::machine(&flex());
    let experiment = experiment(sets);
    Own {
        table: square(100, Task::Regression).secondaries.swap_remove(0),
        settings: experiment.common(),
        seed: fet_core::rng::OwnSeed::new([7; 32]),
        identity: Identity::from_secret([1; 32]),
        roster: (1..=2).map(|party| Identity::from_secret([party; 32]).public()).collect(),
        policy: experiment.policy.clone(),
        device: machine.device,
        computation: Default::default(),
        store: Store::Memory(Vec::new()),
        tell: Arc::new(|_| ()),
    }
}

fn terms(sets: &[&str]) -> Terms {
    let settings = experiment(sets).common().to_toml();
    Terms {
        protocol: fet_core::message::PROTOCOL_VERSION,
        results: fet_train::report::RESULTS_VERSION,
        settings_hash: fet_files::sha256(settings.as_bytes()),
        settings,
        name: "first".to_string(),
        number: 1,
        parties: 2,
        rows: 100,
        standardise: fet_core::data::Standardise::ALL,
    }
}

/// Terms that are not the party's are refused by name, with both values, and the party can still join others.
#[test]
fn terms_that_differ_are_refused_with_both_values() {
    let mut secondary = Secondary::new(own(&[]));
    let refuse = |party: &mut Secondary, terms: Terms, parts: &[&str]| {
        let error = party.ask(Request::Join(terms)).expect_err("refused").to_string();
        for part in parts {
            assert!(error.contains(part), "{part} in {error}");
        }
    };
    let error = secondary.ask(Request::MakeKey).expect_err("refused").to_string();
    assert!(error.contains("not joined"), "{error}");
    refuse(&mut secondary, Terms { protocol: 9, ..terms(&[]) }, &["protocol", "primary has 9", "has 3"]);
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
    // How it computes is its own affair.
    let joined = secondary.ask(Request::Join(terms(&["train.kernels=tensor", "train.recompute=true"])));
    assert!(matches!(joined, Ok(Reply::Joined(_))), "{joined:?}");
    refuse(&mut secondary, terms(&[]), &["joined a run already"]);
}

/// Whatever the primary asks, the party answers or refuses; it does not panic.
#[test]
fn a_request_that_makes_no_sense_is_refused_with_a_reason() {
    let (trainer, _) = party(&[]);
    // Step 7 of the run, in its second or third epoch.
    let schedule = trainer.schedule();
    let scheduled: Vec<u32> =
        schedule.batches(7 / schedule.steps())[7 % schedule.steps()].iter().map(|&row| row as u32).collect();
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
    check(&[], &[Request::Load(Saved { epoch: 3, hash: [0; 32] })], &["no saved state of epoch 3"]);
    check(&[], &[Request::Answer(fet_core::data::Sealed::new(1, 1, Vec::new()))], &["not posed"]);
    let keys = |parties: &[u32], count: usize| {
        let key = SignedKey { key: [9; 32], signature: vec![0; 64] };
        Request::AgreeOnKeys(PublicKeys { parties: parties.to_vec(), keys: vec![key; count] })
    };
    check(&[], &[keys(&[0, 1], 2)], &["before keys were agreed on"]);
    check(&[], &[Request::MakeKey, keys(&[0, 1], 2)], &["party 1", "not signed"]);
    check(&[SECURE], &[keys(&[0, 1], 3)], &["keys", "2 parties"]);
    check(&[SECURE], &[keys(&[0, 7], 2)], &["parties", "below 2"]);
    check(&[SECURE], &[keys(&[1], 1)], &["parties", "party 0"]);
    check(&[SECURE], &[keys(&[0, 1], 2)], &["agreed on already"]);
    check(&[SECURE], &[Request::MakeKey], &["agreed on already"]);
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

/// What the guard of a party lets pass: the schedule, in its order, once.
#[test]
fn a_party_answers_the_schedule_once_and_nothing_else() {
    let schedule_of = |sets: &[&str]| party(sets).0.schedule().clone();
    let schedule = schedule_of(&[]);
    let step = |number: u64, attempt| {
        let batches = schedule.batches(number as usize / schedule.steps());
        let rows = batches[number as usize % schedule.steps()].iter().map(|&row| row as u32).collect();
        Forward { round: Round::Train { step: number }, rows, active: vec![0, 1], attempt }
    };
    let ask = |party: &mut Watched, message: &Forward| party.ask(Request::Forward(message.clone()));
    let refused = |answer: Result<Reply, Failure>, parts: &[&str]| {
        let error = answer.expect_err("refused").to_string();
        parts.iter().for_each(|part| assert!(error.contains(part), "{part} in {error}"));
    };

    // The same again gets the same reply; anything else for the round, or an earlier round, gets none.
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
    let saved = party_one.ask(Request::Load(Saved { epoch: 1, hash: [0; 32] }));
    refused(saved, &["before anything is released"]);
    // Whom a round left out no later round has.
    let alone = Forward { active: vec![0], ..step(5, None) };
    ask(party_one, &alone).expect("the other vanished");
    refused(ask(party_one, &step(6, None)), &["active", "party 1", "left it out"]);

    // Of the attempts at a sum one is opened: the last that was sent.
    let (_trainer, mut parties) = crate::support::open(&experiment(&[SECURE]), square_of(100, 3), &flex());
    let party_one = &mut parties[0];
    let attempt = |number: u32, active: &[u32]| Forward { active: active.to_vec(), ..step(0, Some(number)) };
    let open =
        |attempt: u32| Request::Open(fet_core::message::Open { round: Round::Train { step: 0 }, attempt });
    let reveal = |party: u32, attempt: u32| {
        Request::Reveal(fet_core::message::Reveal { round: Round::Train { step: 0 }, attempt, party })
    };
    refused(party_one.ask(open(0)), &["attempt 0", "not the last"]);
    refused(ask(party_one, &attempt(1, &[0, 1, 2])), &["attempt", "must be 0"]);
    let whole = ask(party_one, &attempt(0, &[0, 1, 2])).expect("the first attempt");
    refused(party_one.ask(reveal(1, 0)), &["attempt 0"]);
    refused(ask(party_one, &attempt(1, &[0, 1, 2])), &["active", "fewer than in the attempt before"]);
    let less = ask(party_one, &attempt(1, &[0, 2])).expect("party 1 vanished");
    assert_ne!(whole, less);
    refused(party_one.ask(open(0)), &["attempt 0", "not the last"]);
    refused(party_one.ask(reveal(2, 1)), &["attempt 1"]);
    let opening = party_one.ask(open(1)).expect("the last attempt");
    assert_eq!(party_one.ask(open(1)).expect("the same"), opening);
    refused(ask(party_one, &attempt(2, &[0, 2])), &["round", "answered once"]);
    for (party, number) in [(0, 1), (1, 1), (2, 0)] {
        refused(party_one.ask(reveal(party, number)), &["attempt"]);
    }
    assert!(matches!(party_one.ask(reveal(2, 1)), Ok(Reply::Share(_))), "it took part and vanished");
    let next = Forward { active: vec![0, 2], ..step(1, Some(0)) };
    refused(ask(party_one, &next), &["active", "party 2"]);
    let share = ShareParameters { round: Round::Train { step: 1 }, active: vec![0, 2], attempt: Some(0) };
    refused(party_one.ask(Request::ShareParameters(share)), &["averages none"]);

    // Parameters are sent when the method averages them, and at no other step.
    let (_trainer, mut parties) = party(&["method.pe_average_every=2"]);
    let share =
        |round| Request::ShareParameters(ShareParameters { round, active: vec![0, 1], attempt: None });
    for round in
        [Round::Train { step: 1 }, Round::Average { epoch: 0 }, Round::Validation { epoch: 1, batch: 0 }]
    {
        refused(parties[0].ask(share(round)), &["must be an averaging"]);
    }
    assert!(matches!(parties[0].ask(share(Round::Average { epoch: 1 })), Ok(Reply::Parameters(_))));

    // For the attempt that it opened itself a party helps to open as many as vanished, and for no other; it answers no attempt over
    // fewer than three of four, whoever vanishes.
    let (_trainer, mut parties) = crate::support::open(&experiment(&[SECURE]), square_of(100, 4), &flex());
    let party_one = &mut parties[0];
    ask(party_one, &attempt(0, &[0, 1, 2, 3])).expect("the first attempt");
    refused(ask(party_one, &attempt(1, &[0, 1])), &["2 parties are too few", "it takes 3"]);
    party_one.ask(open(0)).expect("it was sent");
    let share = |party: &mut Watched, of| match party.ask(reveal(of, 0)) {
        Ok(Reply::Share(share)) => share,
        other => panic!("{other:?}"),
    };
    let (second, third) = (share(party_one, 2), share(party_one, 1));
    assert_ne!(second, third);
    assert_eq!(share(party_one, 2), second);
    refused(ask(party_one, &Forward { active: vec![0, 3], ..step(1, Some(0)) }), &["too few"]);
}

/// A party that vanishes between its message and its opening stays in that sum, which the others open, and in no other.
#[test]
fn a_party_lost_within_the_opening_of_a_sum_stays_in_it() {
    struct Loses<P>(P);
    impl<P: Party> Party for Loses<P> {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
            let lost = matches!(&request, Request::Open(open) if open.round >= (Round::Train { step: 2 }));
            if lost { Err(Failure::Gone) } else { self.0.ask(request) }
        }
    }
    let mut data = square(100, Task::Regression);
    for name in ["third", "fourth"] {
        let mut more = data.secondaries[0].clone();
        more.name = name.to_string();
        data.secondaries.push(more);
    }
    let experiment = experiment(&[SECURE, "train.epochs=1"]);
    let run = |lose: bool| {
        let wrap = |index: usize, party: Watched| -> Box<dyn Party> {
            if lose && index == 1 { Box::new(Loses(party)) } else { Box::new(party) }
        };
        let (mut trainer, _parties) = watched(&experiment, data.clone(), &flex(), wrap).expect("a trainer");
        let losses = losses(&mut trainer);
        (losses, trainer.progress().gone.clone())
    };
    let (whole, lossy) = (run(false), run(true));
    assert_eq!((whole.1, lossy.1), (vec![], vec![1]));
    // The sum of the step in which it vanished is the same: its message was there.
    assert_eq!(whole.0[..3], lossy.0[..3]);
}

/// A relay cannot stand between parties: a key that it signs itself, or that was signed for another party, is refused.
#[test]
fn a_key_that_its_party_did_not_sign_is_refused_by_every_other() {
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
    // In the middle: a key of the relay's own with the signature that it can make, or with the party's for another key.
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

/// A party's own randomness, links and weights stay where they are: its `Debug` shows none of them.
#[test]
fn debug_shows_no_values() {
    let (trainer, parties) = party(&[]);
    let text = format!("{:?} {:?}", parties[0], trainer.federation());
    assert!(!text.contains("0.") && text.len() < 300, "{text}");
    let _ = trainer.split();
    let seed = format!("{:?}", own(&[]).seed);
    assert_eq!(seed, "OwnSeed");
}

/// Two seeds give two noises: what a party adds does not follow from what the primary knows.
#[test]
fn noise_follows_from_the_partys_own_seed() {
    let sets = ["privacy.kind=gaussian", "train.epochs=1"];
    let run = |own: [u8; 32]| {
        let experiment = experiment(&sets);
        let machine = fet::run::machine(&flex());
        let simulation = Simulation::new(&experiment, &machine);
        let (primary, tables) = divide(square(100, Task::Regression));
        let parties = tables.into_iter().map(|table| -> Box<dyn Party> {
            let seed = fet_core::rng::OwnSeed::new(own);
            let identity = Identity::from_secret(own);
            let roster = [identity.public(); 2].into();
            Box::new(Secondary::new(Own {
                table,
                settings: experiment.common(),
                seed,
                identity,
                roster,
                policy: experiment.policy.clone(),
                device: machine.device.clone(),
                computation: experiment.train.computation(true),
                store: Store::Memory(Vec::new()),
                tell: Arc::clone(&simulation.tell),
            }))
        });
        let mut trainer =
            Trainer::new(&experiment, primary, parties.collect(), Vec::new(), &machine).expect("sound");
        losses(&mut trainer)
    };
    assert_eq!(run([1; 32]), run([1; 32]));
    assert_ne!(run([1; 32]), run([2; 32]));
    let simulated =
        losses(&mut trainer(&experiment(&sets), square(100, Task::Regression), &flex()).expect("sound"));
    assert_ne!(simulated, run([1; 32]));
}
