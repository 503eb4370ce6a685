//! Several programs of the primary at one party.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use crate::support::{Many, Pair, quick};
use fet_net::memory::{Faults, Memory, pair};
use fet_net::{Answer, CallError, Caller, Local, Peer, Programs};

/// Number of programs.
const PROGRAMS: usize = 5;
/// Longest wait of a test.
const END: Duration = Duration::from_secs(20);

/// Mirrors that count the requests of each program.
#[derive(Default)]
struct Mirrors {
    requests: Mutex<BTreeMap<u64, usize>>,
    /// Number of sessions that are open.
    open: AtomicUsize,
    /// Number of programs that were too many.
    above: AtomicUsize,
    /// Place where sessions wait for each other with a request of one byte.
    meeting: Option<Barrier>,
}

struct Session<'a> {
    mirrors: &'a Mirrors,
    instance: u64,
}

impl Programs for Mirrors {
    fn begins(&self, peer: &Peer, is_above: bool) -> impl Answer {
        self.above.fetch_add(usize::from(is_above), Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Session { mirrors: self, instance: peer.instance_id }
    }
}

impl Answer for Session<'_> {
    fn answer(&mut self, mut request: Vec<u8>) -> Vec<u8> {
        *self.mirrors.requests.lock().unwrap().entry(self.instance).or_default() += 1;
        if let (1, Some(meeting)) = (request.len(), &self.mirrors.meeting) {
            meeting.wait();
        }
        request.reverse();
        request
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.mirrors.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Programs of a party's primary: this process of each, and its end.
struct House {
    pairing: Pair,
    programs: Vec<(Local, Memory)>,
}

impl House {
    fn caller(&self, at: usize) -> Caller {
        let (local, end) = self.programs[at].clone();
        Pair { bank: local, ..self.pairing.clone() }.caller(end, quick())
    }
}

/// Serves some programs while `run` runs; from `most` on a silent one must go. `run` gets a function that closes a
/// program's lane.
fn serving(
    programs: usize,
    faults: &Faults,
    most: usize,
    mirrors: &Mirrors,
    run: impl FnOnce(&House, &dyn Fn(u64)),
) {
    let pairing = Pair::new();
    let (ends, there): (Vec<_>, Vec<_>) =
        (0..programs as u64).map(|seed| pair(&Faults { seed, ..faults.clone() })).unzip();
    let locals = (0..programs).map(|at| Local::new(Arc::clone(&pairing.bank.keys), format!("program {at}")));
    let mut service = pairing.service(Many(there), quick());
    let house = House { programs: locals.zip(ends).collect(), pairing };
    let (close, stop) = (service.closer(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| service.serve_each(most, mirrors, &stop));
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&house, &close)));
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        if let Err(panic) = ran {
            std::panic::resume_unwind(panic);
        }
    });
    assert_eq!(mirrors.open.load(Ordering::Relaxed), 0, "every session ends with the service");
}

/// Waits until `is_true`.
fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < END, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn programs_are_answered_at_the_same_time() {
    let mirrors = Mirrors { meeting: Some(Barrier::new(PROGRAMS)), ..Mirrors::default() };
    serving(PROGRAMS, &Faults::default(), PROGRAMS, &mirrors, |house, _| {
        std::thread::scope(|scope| {
            for at in 0..PROGRAMS {
                // Each answer waits for the requests of all programs.
                scope.spawn(move || assert_eq!(house.caller(at).call(&[7]).unwrap(), [7]));
            }
        });
    });
    assert_eq!(*mirrors.requests.lock().unwrap().values().collect::<Vec<_>>(), [&1; PROGRAMS]);
}

#[test]
fn each_request_is_answered_once_on_a_bad_path() {
    let faults = Faults {
        loss: 0.1,
        repetition: 0.1,
        alteration: 0.05,
        delay: Duration::ZERO..Duration::from_millis(20),
        ..Faults::default()
    };
    const CALLS: usize = 20;
    let mirrors = Mirrors::default();
    serving(PROGRAMS, &faults, PROGRAMS, &mirrors, |house, _| {
        std::thread::scope(|scope| {
            for at in 0..PROGRAMS {
                scope.spawn(move || {
                    let mut caller = house.caller(at);
                    caller.wait_for(END, &mut |_| {}).unwrap();
                    for call in 0..CALLS {
                        let request: Vec<u8> =
                            (0..1 + call * 9_000).map(|byte| (byte * (at + 1)) as u8).collect();
                        let answer = loop {
                            match caller.call(&request) {
                                Ok(answer) => break answer,
                                Err(CallError::Lost { .. } | CallError::Altered { .. }) => {}
                                Err(error) => panic!("program {at}, call {call}: {error}"),
                            }
                        };
                        assert!(answer.iter().eq(request.iter().rev()), "program {at}, call {call}");
                    }
                });
            }
        });
    });
    let requests = mirrors.requests.lock().unwrap();
    assert_eq!(requests.values().collect::<Vec<_>>(), [&CALLS; PROGRAMS]);
}

#[test]
fn a_program_that_is_closed_learns_it_and_the_others_go_on() {
    let mirrors = Mirrors::default();
    serving(2, &Faults::default(), 2, &mirrors, |house, close| {
        let (mut training, mut predictions) = (house.caller(0), house.caller(1));
        assert_eq!(training.call(b"ab").unwrap(), b"ba");
        assert_eq!(predictions.call(b"cd").unwrap(), b"dc");
        close(house.programs[0].0.instance_id);
        assert_eq!(training.call(b"ef"), Err(CallError::Taken));
        assert_eq!(predictions.call(b"gh").unwrap(), b"hg");
        wait_until("the closed session ends", || mirrors.open.load(Ordering::Relaxed) == 1);
    });
}

#[test]
fn a_silent_program_makes_room_and_one_that_is_heard_does_not() {
    let mirrors = Mirrors::default();
    serving(4, &Faults::default(), 2, &mirrors, |house, _| {
        let mut callers: Vec<_> = (0..4).map(|at| house.caller(at)).collect();
        for caller in &mut callers[..3] {
            assert_eq!(caller.call(b"ab").unwrap(), b"ba");
        }
        assert_eq!(
            mirrors.open.load(Ordering::Relaxed),
            3,
            "nobody was silent, so the third is answered, too"
        );
        assert_eq!(mirrors.above.load(Ordering::Relaxed), 1, "the third is one too many");
        let began = Instant::now();
        while began.elapsed() < quick().silence * 2 {
            assert_eq!(callers[1].call(b"cd").unwrap(), b"dc");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(callers[3].call(b"ef").unwrap(), b"fe");
        assert_eq!(mirrors.above.load(Ordering::Relaxed), 1, "a silent program makes room at once");
        wait_until("two silent sessions end", || mirrors.open.load(Ordering::Relaxed) == 2);
        assert_eq!(callers[1].call(b"gh").unwrap(), b"hg");
        assert_eq!(callers[0].call(b"ij"), Err(CallError::Taken));
    });
}

#[test]
fn a_program_that_ends_makes_room_at_once() {
    for most in [1, 2] {
        let mirrors = Mirrors::default();
        serving(6, &Faults::default(), most, &mirrors, |house, _| {
            for at in 0..6 {
                let mut caller = house.caller(at);
                assert_eq!(caller.call(b"ab").unwrap(), b"ba");
                drop(caller);
                wait_until("the session ends", || mirrors.open.load(Ordering::Relaxed) == 0);
            }
        });
        assert_eq!(mirrors.above.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_limit_of_one_program_holds_and_a_silent_one_makes_room() {
    let mirrors = Mirrors::default();
    serving(3, &Faults::default(), 1, &mirrors, |house, _| {
        let (mut first, mut second, mut third) = (house.caller(0), house.caller(1), house.caller(2));
        assert_eq!(first.call(b"ab").unwrap(), b"ba");
        assert_eq!(second.call(b"cd").unwrap(), b"dc");
        assert_eq!(mirrors.above.load(Ordering::Relaxed), 1, "the second is one too many");
        drop(second);
        std::thread::sleep(quick().silence + quick().heartbeat);
        assert_eq!(third.call(b"ef").unwrap(), b"fe");
        assert_eq!(mirrors.above.load(Ordering::Relaxed), 1, "the first was silent");
        assert_eq!(first.call(b"gh"), Err(CallError::Taken));
    });
}
