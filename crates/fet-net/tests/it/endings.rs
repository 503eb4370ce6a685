//! Errors of a link whose party is absent, gone, restarted or another, or whose messages are too large.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{self, Forger, Many, Mirror, Pair, again, quick, running};
use fet_net::memory::{Faults, pair};
use fet_net::{Activity, CallError, Keys, Local, Service, Settings, Transport};

const JOIN: Duration = Duration::from_secs(10);

fn no_report(_: &fet_net::State) {}

#[test]
fn a_party_that_does_not_come_is_waited_for_no_longer_than_was_said() {
    let pairing = Pair::new();
    let (here, _there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, quick());
    let (began, mut told) = (Instant::now(), 0);
    let error = caller.wait_for(Duration::from_millis(1200), &mut |state| {
        assert_eq!(state.doing, Activity::Joining);
        told += 1;
    });
    assert!(matches!(error, Err(CallError::NotJoined { unreadable: 0, .. })), "{error:?}");
    assert!((Duration::from_millis(1200)..Duration::from_secs(3)).contains(&began.elapsed()));
    assert!((2..=4).contains(&told), "{told}");
}

#[test]
fn another_identity_is_refused_at_both_ends() {
    let pairing = Pair::new();
    let thief = Local::new(Keys::generate(), "thief");
    // The party is not the pinned one.
    let (here, there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, quick());
    let primary = pairing.bank.keys.public();
    let service = Service::new(there, thief.clone(), pairing.route.clone(), primary, quick());
    let (pinned, found) = (pairing.shop.keys.public().to_string(), thief.keys.public().to_string());
    let names_both = |text: &str| text.contains(&pinned) && text.contains(&found);
    let look = service.watch();
    let mirror = running(service, Mirror::default(), || {
        let error = caller.wait_for(Duration::from_secs(1), &mut no_report).unwrap_err();
        assert!(matches!(error, CallError::NotJoined { objection: Some(_), .. }), "{error}");
        assert!(names_both(&error.to_string()), "{error}");
        let said = look().objection.expect("the party knows, too");
        assert!(names_both(&said), "{said}");
    });
    assert_eq!(mirror.begun.len(), 0);
    // The primary is not the pinned one.
    let (here, there) = pair(&Faults::default());
    let mut caller = Pair { bank: thief, ..pairing.clone() }.caller(here, quick());
    let service = pairing.service(there, quick());
    let mirror = running(service, Mirror::default(), || {
        let error = caller.wait_for(Duration::from_secs(1), &mut no_report).unwrap_err();
        assert!(matches!(error, CallError::NotJoined { .. }), "{error}");
    });
    assert_eq!((mirror.begun.len(), mirror.requests), (0, 0));
}

/// A supervisor sees that the thread of the link runs, also while the party computes, and only while the service serves.
#[test]
fn a_service_gives_signs_of_life_while_it_serves() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, quick());
    let service = pairing.service(there, quick());
    let heartbeat = service.heartbeat();
    assert_eq!(heartbeat.age(), None);
    let mirror = Mirror { takes: quick().silence * 2, ..Mirror::default() };
    running(service, mirror, || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        let mut ages = Vec::new();
        caller.call_with(b"abc", &mut |_| ages.push(heartbeat.age())).unwrap();
        let is_young = |age: &Option<Duration>| age.is_some_and(|age| age < quick().silence);
        assert!(!ages.is_empty() && ages.iter().all(is_young), "{ages:?}");
    });
    let began = Instant::now();
    while heartbeat.age().is_none_or(|age| age <= quick().silence) {
        assert!(began.elapsed() < JOIN, "the thread has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_party_that_computes_is_not_lost_and_one_that_is_gone_is() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let cutter = here.clone();
    let mut caller = pairing.caller(here, quick());
    let service = pairing.service(there, quick());
    let mirror = Mirror { takes: quick().silence * 2, ..Mirror::default() };
    let mirror = running(service, mirror, || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        let mut computing = 0;
        let answer = caller.call_with(b"abc", &mut |state| {
            computing += usize::from(state.doing == Activity::Computing);
        });
        assert_eq!(answer.unwrap(), b"cba");
        assert!(computing >= 3, "{computing}");

        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                cutter.cut(true);
            });
            let began = Instant::now();
            let error = caller.call(b"def").unwrap_err();
            assert!(matches!(error, CallError::Lost { .. }), "{error}");
            assert!((quick().silence..quick().silence * 2).contains(&began.elapsed()), "{error}");
        });
        // The same call continues, and is not computed again.
        cutter.cut(false);
        caller.wait_for(JOIN, &mut no_report).unwrap();
        assert_eq!(caller.call(b"def").unwrap(), b"fed");
        assert_eq!(caller.call(b"def").unwrap(), b"fed");
    });
    assert_eq!((mirror.requests, mirror.begun.len()), (3, 1), "the last one is a new request");
}

#[test]
fn gives_up_a_party_that_computes_for_too_long() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let patience = Duration::from_secs(1);
    let mut caller = pairing.caller(here, Settings { patience, ..quick() });
    let mirror = Mirror { takes: patience * 3, ..Mirror::default() };
    running(pairing.service(there, quick()), mirror, || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        let began = Instant::now();
        let error = caller.call(b"abc").unwrap_err();
        assert!(matches!(error, CallError::Stalled { computing: true, .. }), "{error}");
        assert!((patience..patience * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
    });
}

#[test]
fn counts_time_without_progress_over_attempts() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let (here, alter) = Forger::new(here);
    let patience = quick().silence * 3;
    let mut caller = pairing.caller(here, Settings { patience, ..quick() });
    running(pairing.service(there, quick()), Mirror::default(), || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        assert_eq!(caller.call(b"ab").unwrap(), b"ba");
        alter.store(true, Ordering::Relaxed);
        let (began, mut attempts) = (Instant::now(), 0);
        let error = loop {
            match caller.call(&[1; 200]).unwrap_err() {
                CallError::Altered { .. } => attempts += 1,
                error => break error,
            }
            assert!(attempts < 10, "no end");
        };
        assert!(matches!(error, CallError::Stalled { computing: false, .. }), "{error}");
        assert!(
            attempts >= 1 && began.elapsed() < patience * 2,
            "{attempts} attempts, {:?}",
            began.elapsed()
        );
        alter.store(false, Ordering::Relaxed);
        assert_eq!(caller.call(&[2; 200]).unwrap(), [2; 200], "another request has its own time");
    });
}

#[test]
fn finds_two_processes_with_one_key() {
    let pairing = Pair::new();
    let ((here, there), (here_too, there_too)) = (pair(&Faults::default()), pair(&Faults::default()));
    let twin = Pair { shop: again(&pairing.shop), ..pairing.clone() };
    let (first, second) = (pairing.service(there, quick()), twin.service(there_too, quick()));
    let looks = [Box::new(first.watch()) as Box<dyn Fn() -> fet_net::State>, Box::new(second.watch())];
    let mut caller = pairing.caller(Many(vec![here, here_too]), quick());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        for mut service in [first, second] {
            scope.spawn(move || service.serve(&mut Mirror::default(), stop));
        }
        let mut found = None;
        for _ in 0..1000 {
            match caller.call(b"ab") {
                Ok(_) => {}
                Err(error) => {
                    found = Some(error);
                    break;
                }
            }
        }
        let said: Vec<_> = looks.iter().map(|look| look().objection.unwrap_or_default()).collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(found, Some(CallError::Twice));
        assert!(said.iter().all(|said| said.contains("two processes")), "{said:?}");
    });
}

#[test]
fn a_link_that_was_idle_answers_at_once() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, quick());
    let mirror = running(pairing.service(there, quick()), Mirror::default(), || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        let before = caller.state();
        std::thread::sleep(quick().silence * 2);
        let began = Instant::now();
        assert_eq!(caller.call(b"ab").unwrap(), b"ba");
        assert!(began.elapsed() < quick().heartbeat, "{:?}", began.elapsed());
        let heartbeats = (caller.state().received - before.received) / 100;
        assert!(heartbeats < 40, "the party does not talk to one who is silent: {heartbeats}");
    });
    assert_eq!((mirror.requests, mirror.begun.len()), (1, 1));
}

#[test]
fn a_call_that_was_given_up_answers_no_other() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let cutter = here.clone();
    let mut caller = pairing.caller(here, quick());
    let mirror = Mirror { takes: quick().silence * 2, ..Mirror::default() };
    let mirror = running(pairing.service(there, quick()), mirror, || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                cutter.cut(true);
            });
            assert!(matches!(caller.call(b"given up"), Err(CallError::Lost { .. })));
        });
        cutter.cut(false);
        assert_eq!(caller.call(b"another").unwrap(), b"rehtona");
    });
    assert_eq!(mirror.requests, 2);
}

#[test]
fn a_large_call_that_was_lost_goes_on() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults { delay: support::millis(5, 6), ..Faults::default() });
    let cutter = here.clone();
    let mut caller = pairing.caller(here, quick());
    let service = pairing.service(there, quick());
    let request: Vec<u8> = (0..50_000_000_u32).map(|at| (at / 3) as u8).collect();
    let mirror = running(service, Mirror::default(), || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        let (mut lost, mut answer) = (0, None);
        while answer.is_none() {
            std::thread::scope(|scope| {
                let (cutter, cut) = (&cutter, lost < 3);
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(60));
                    cutter.cut(cut);
                });
                match caller.call(&request) {
                    Ok(bytes) => answer = Some(bytes),
                    Err(CallError::Lost { .. }) => lost += 1,
                    Err(error) => panic!("{error}"),
                }
            });
            cutter.cut(false);
        }
        assert!(answer.unwrap().iter().eq(request.iter().rev()));
        assert!(lost > 0, "the call was too short for this test");
    });
    assert_eq!(mirror.requests, 1);
}

#[test]
fn a_party_that_was_started_again_is_told_apart() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, quick());
    let first = pairing.service(there.clone(), quick());
    running(first, Mirror::default(), || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        assert_eq!(caller.call(b"ab").unwrap(), b"ba");
    });
    let second = Pair { shop: again(&pairing.shop), ..pairing.clone() };
    let mirror = running(second.service(there.clone(), quick()), Mirror::default(), || {
        assert_eq!(caller.call(b"cd"), Err(CallError::Restarted));
        assert_eq!(caller.call(b"cd").unwrap(), b"dc");
    });
    assert_eq!(mirror.requests, 1, "the call before was not made");
    // The same holds if the caller waits for the party.
    let error = caller.call(b"ef").unwrap_err();
    assert!(matches!(error, CallError::Lost { .. }), "{error}");
    running(pairing.service(there, quick()), Mirror::default(), || {
        assert_eq!(caller.wait_for(JOIN, &mut no_report), Err(CallError::Restarted));
        assert_eq!(caller.call(b"ef").unwrap(), b"fe");
    });
}

#[test]
fn a_primary_that_was_started_again_is_told_apart() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mirror = running(pairing.service(there, quick()), Mirror::default(), || {
        for bank in [pairing.bank.clone(), again(&pairing.bank)] {
            let mut caller = Pair { bank, ..pairing.clone() }.caller(here.clone(), quick());
            caller.wait_for(JOIN, &mut no_report).unwrap();
            assert_eq!(caller.call(b"ab").unwrap(), b"ba");
        }
    });
    let instances: Vec<_> = mirror.begun.iter().map(|peer| peer.instance_id).collect();
    assert_eq!(instances, [pairing.bank.instance_id, !pairing.bank.instance_id]);
}

#[test]
fn a_primary_whose_party_answers_another_process_since_is_told() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mirror = running(pairing.service(there, quick()), Mirror::default(), || {
        let mut first = pairing.caller(here.clone(), quick());
        assert_eq!(first.call(b"ab").unwrap(), b"ba");
        let second = Pair { bank: again(&pairing.bank), ..pairing.clone() };
        let mut second = second.caller(here.clone(), quick());
        assert_eq!(second.call(b"cd").unwrap(), b"dc");
        let error = first.call(b"ef").unwrap_err();
        assert!(matches!(error, CallError::Taken), "{error}");
        assert_eq!(second.call(b"gh").unwrap(), b"hg");
    });
    assert_eq!((mirror.requests, mirror.begun.len()), (3, 2));
}

#[test]
fn a_service_serves_again_where_it_stopped() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, quick());
    let mut service = pairing.service(there, quick());
    let mut mirror = Mirror::default();
    for _ in 0..3 {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let answer = caller.call(b"ab");
                stop.store(true, Ordering::Relaxed);
                assert_eq!(answer.unwrap(), b"ba");
            });
            service.serve(&mut mirror, &stop);
        });
    }
    assert_eq!((mirror.requests, mirror.begun.len()), (3, 1));
}

#[test]
fn too_much_is_refused_with_sizes() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, Settings { largest: 20, ..quick() });
    let service = pairing.service(there, Settings { largest: 30, ..quick() });
    let mirror = running(service, Mirror::default(), || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        assert_eq!(caller.call(&[0; 31]), Err(CallError::TooLarge { size: 31, limit: 30 }));
        assert_eq!(caller.call(&[0; 30]), Err(CallError::AnswerTooLarge { size: 30, limit: 20 }));
        assert_eq!(caller.call(&[0; 20]), Ok(vec![0; 20]));
    });
    assert_eq!(mirror.requests, 2);
}

#[test]
fn what_is_altered_on_the_way_is_said() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let (here, alter) = Forger::new(here);
    let mut caller = pairing.caller(here, quick());
    let mirror = running(pairing.service(there, quick()), Mirror::default(), || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        assert_eq!(caller.call(b"ab").unwrap(), b"ba");
        alter.store(true, Ordering::Relaxed);
        let error = caller.call(&[1; 200]).unwrap_err();
        assert!(matches!(error, CallError::Altered { packets: 3.., .. }), "{error}");
        alter.store(false, Ordering::Relaxed);
        assert_eq!(caller.call(&[1; 200]).unwrap(), [1; 200]);
    });
    assert_eq!(mirror.requests, 2);
}

/// Sends every packet that ever crossed again to both ends, with forged packets, while calls are made.
#[test]
fn forged_and_repeated_packets_disturb_nothing() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let (inject_there, inject_here) = (here.clone(), there.clone());
    let (tap_here, tap_there) = (support::Log::new(here), support::Log::new(there));
    let (sent, answered) = (tap_here.sent(), tap_there.sent());
    let mut caller = pairing.caller(tap_here, quick());
    let mirror = running(pairing.service(tap_there, quick()), Mirror::default(), || {
        caller.wait_for(JOIN, &mut no_report).unwrap();
        for round in 0..20_u8 {
            let request = vec![round; 1 + usize::from(round) * 20_000];
            for (log, way) in [(&sent, &inject_there), (&answered, &inject_here)] {
                for packet in log.lock().unwrap().iter() {
                    way.send(packet.clone());
                    let mut forged = packet.clone();
                    let at = usize::from(round) * 7 % forged.len();
                    forged[at] ^= 1 << (round % 8);
                    way.send(forged);
                }
                for kind in 0..=4 {
                    way.send(vec![kind; 1 + usize::from(round) * 9]);
                }
                way.send(Vec::new());
            }
            assert_eq!(caller.call(&request).unwrap(), request, "round {round}");
        }
    });
    assert_eq!((mirror.requests, mirror.begun.len()), (20, 1));
}
