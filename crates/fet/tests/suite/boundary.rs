//! Tests the party boundary: only messages cross it, and a run does not ask a lost party again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fet_core::data::Task;
use fet_core::message::{Answer, LARGEST_FRAME, Reply, Request, Round, decode, encode};
use fet_core::party::{Failure, Party, Refusal};
use fet_core::privacy::Tally;
use fet_federation::checkpoint;
use fet_federation::prepare::divide;
use fet_federation::secondary::Secondary;
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::Trainer;

use crate::support::{
    experiment, flex, intercepted, losses, model, silent_party, square, vanishing_party, watched, with_copies,
};

const SECURE: &str = "aggregator.kind=secure-average";
const NOISE: &str = "privacy.kind=discrete-gaussian";

/// Requests to a party and its answers, as bytes.
type Transcript = Arc<Mutex<Vec<(Vec<u8>, Vec<u8>)>>>;

/// Party that consists only of a transcript: it repeats the recorded answers to the recorded requests.
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

/// Returns the report without the time of the run.
fn report(trainer: &Trainer, experiment: &fet_core::experiment::Experiment) -> serde_json::Value {
    let folder = std::path::Path::new("none");
    let made_from = fet::provenance::Provenance::of_experiment(experiment, &folder.into()).expect("no files");
    let report = fet::run::report_of(trainer, experiment, made_from, Default::default()).expect("a report");
    serde_json::to_value(report).expect("plain data")
}

/// The primary's results depend only on the messages and its own table: a run with transcripts in place of
/// the secondaries has the same report.
#[test]
fn report_depends_only_on_the_transcript_and_the_primarys_data() {
    for sets in [
        &["method.party_dropout=0.5"][..],
        &["method.pe_average_every=1", "linker.kind=rotation", "linker.neighbours=4"],
        &["method.kind=fedsim"],
        &["method.kind=top1sim", "train.wire=bytes"],
        &["method.kind=gbdt-top1"],
        &["method.kind=gbdt-pooled"],
        &["method.kind=fet-trees", "method.growth.trees=20"],
        &["method.kind=fet-trees", "method.growth.trees=20", "aggregator.kind=average"],
        &["method.kind=linear-top1"],
        &["method.kind=fet-pool", "linker.kind=posterior", "train.refine_keys=true"],
        &["method.kind=fet-pool", SECURE, NOISE],
        &["aggregator.kind=similarity-weighted"],
        &[SECURE, NOISE, "method.pe_average_every=0"],
        &[SECURE, NOISE, "privacy.learning=frozen", "privacy.max_occurrences=2"],
    ] {
        let experiment = experiment(&[&["train.epochs=2"], sets].concat());
        let data = square(120, Task::Regression);
        let transcripts: [Transcript; 2] = Default::default();
        let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
            let transcript = Arc::clone(&transcripts[index]);
            intercepted(party, move |party, request| {
                let asked = encode(&request).expect("a frame");
                let reply = party.ask(request)?;
                let answered = encode::<Answer>(&Ok(reply.clone())).expect("a frame");
                transcript.lock().expect("no panic").push((asked, answered));
                Ok(reply)
            })
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

/// Messages as bytes and messages passed in memory give the same models, bit for bit, and the same report.
#[test]
fn messages_as_bytes_give_the_same_results() {
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
            let wrap = |_: usize, party: ObservedParty| simulation.wired(party);
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

#[test]
fn resumed_run_skips_dropped_parties_and_costs_the_same() {
    let experiment = experiment(&[SECURE, NOISE, "privacy.noise=50", "train.epochs=3"]);
    let machine = fet::run::machine(&flex());
    let data = with_copies(square(200, Task::Regression), &["third"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let identity = serde_json::json!({"name": "test"});
    // Party 2 drops out at the third step; `asked` counts its requests.
    let made = |out: &str, gone: Vec<usize>, from: u64| {
        let folder = folder.path().join(out);
        let simulation = Simulation { folder: Some(&folder), ..Simulation::new(&experiment, &machine) };
        let (primary, tables) = divide(data.clone());
        let asked = Arc::new(AtomicUsize::new(0));
        let wrap = |(index, party): (usize, Secondary)| -> Box<dyn Party> {
            if index != 1 {
                return Box::new(party);
            }
            let asked = Arc::clone(&asked);
            let party = vanishing_party(party, Arc::new(AtomicU64::new(from)));
            intercepted(party, move |party, request| {
                asked.fetch_add(1, Ordering::Relaxed);
                party.ask(request)
            })
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
    let gone = checkpoint::dropped_out(&bytes).expect("sound");
    assert_eq!(gone, [1]);
    // The party has returned and would answer.
    let (mut resumed, asked) = made("broken", gone, u64::MAX);
    checkpoint::load(&mut resumed, &identity, &bytes).expect("its own checkpoint");
    while !resumed.is_done() {
        losses(&mut resumed);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0, "whom the run lost is not asked again");
    assert_eq!(resumed.progress(), whole.progress());
    assert_eq!(resumed.releases(), whole.releases());
    let epsilon = |trainer: &Trainer| trainer.spent().and_then(|spent| spent.epsilon).expect("bounded");
    assert_eq!(epsilon(&resumed), epsilon(&whole));
    assert_eq!(resumed.best(), whole.best());
}

/// If parties drop out outside of training, the run continues without them, and the account includes this.
#[test]
fn run_continues_without_parties_that_drop_out() {
    let data = with_copies(square(200, Task::Regression), &["third", "fourth"]);
    let check = |sets: &[&str], when: fn(Round) -> bool| {
        let experiment = experiment(&[&[SECURE, "train.epochs=2"], sets].concat());
        let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
            let mut gone = false;
            let lost = move |request: &Request| {
                gone |= request.round().is_some_and(when);
                gone
            };
            if index == 1 { silent_party(party, lost) } else { Box::new(party) }
        };
        let (mut trainer, _) = watched(&experiment, data.clone(), &flex(), wrap).expect("a trainer");
        while !trainer.is_done() {
            losses(&mut trainer);
        }
        trainer.finish().expect("those that are left write their models");
        assert_eq!(trainer.federation().dropped(), [1], "{sets:?}");
        let all = Tally::of_all(&trainer.releases().tallies);
        all.iter().collect::<Vec<_>>()
    };
    // Five steps, a validation and a test of one batch in each of two epochs, as (parties, releases).
    let all = check(&["method.pe_average_every=1"], |round| matches!(round, Round::Average { .. }));
    assert_eq!(all, [(3, 9), (4, 5)]);
    let all = check(&[NOISE], |round| matches!(round, Round::Validation { batch: 0, .. }));
    assert_eq!(all, [(3, 9), (4, 5)]);
    let frozen =
        [NOISE, "privacy.learning=frozen", "privacy.max_occurrences=2", "train.evaluation_batch_size=64"];
    let all = check(&frozen, |round| round == Round::Once { batch: 1 });
    assert_eq!(all, [(3, 3), (4, 1)]);
}
