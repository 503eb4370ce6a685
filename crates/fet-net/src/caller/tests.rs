//! Programs with a common protocol version use the newest one. All others refuse each other, authenticated by
//! their keys and before any request.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::identity::Keys;
use crate::memory::{Faults, pair};
use crate::service::{Answer, Service};

/// Party that echoes requests, and records the versions of the primaries that begin or that it refuses.
#[derive(Default)]
struct Recorder {
    begun: Vec<u16>,
    refused: Vec<(String, u16, u16)>,
}

impl Answer for Recorder {
    fn begins(&mut self, peer: &Peer) {
        self.begun.push(peer.version);
    }

    fn answer(&mut self, request: Vec<u8>) -> Vec<u8> {
        request
    }

    fn refused(&mut self, peer: &Peer, ours: u16) {
        self.refused.push((peer.about.clone(), peer.version, ours));
    }
}

/// Outcome of two calls.
struct Outcome {
    calls: [Result<Vec<u8>, CallError>; 2],
    /// Version of the session, as the primary knows it.
    version: Option<u16>,
    party: Recorder,
}

/// Has a primary that speaks `ours` call a party that speaks `theirs` twice.
fn call_twice(ours: RangeInclusive<u16>, theirs: RangeInclusive<u16>) -> Outcome {
    let local = |versions: RangeInclusive<u16>, about: &str| {
        let (oldest, version) = versions.into_inner();
        Local { version, oldest, ..Local::new(Keys::generate(), about) }
    };
    let (bank, shop) = (local(ours, "bank 1.0"), local(theirs, "shop 2.0"));
    let name = |text: &str| text.parse().unwrap();
    let route = Route { run: name("run"), primary: name("bank"), party: name("shop") };
    let (here, there) = pair(&Faults::default());
    let (bank_key, shop_key) = (bank.keys.public(), shop.keys.public());
    let mut caller = Caller::new(here, bank, route.clone(), shop_key, Settings::default());
    let mut service = Service::new(there, shop, route, bank_key, Settings::default());
    let (stop, mut recorder) = (AtomicBool::new(false), Recorder::default());
    let calls = std::thread::scope(|scope| {
        scope.spawn(|| service.serve(&mut recorder, &stop));
        let calls = [0; 2].map(|_| caller.call(b"request"));
        std::thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
        calls
    });
    Outcome { calls, version: caller.peer().map(|peer| peer.version), party: recorder }
}

#[test]
fn two_programs_use_the_newest_common_version() {
    for (ours, theirs, common) in
        [(8..=8, 8..=8, 8), (7..=8, 8..=9, 8), (8..=9, 7..=8, 8), (7..=9, 7..=9, 9), (5..=9, 7..=7, 7)]
    {
        let newest = (*ours.end(), *theirs.end());
        let Outcome { calls, version, party } = call_twice(ours, theirs);
        assert_eq!(calls, [0; 2].map(|_| Ok(b"request".to_vec())), "{newest:?}");
        assert_eq!((version, &party.begun[..]), (Some(common), &[common][..]), "{newest:?}");
        // An older party names the offer that it refused once.
        let refused = (newest.0 > newest.1).then(|| ("bank 1.0".to_owned(), newest.0, newest.1));
        assert_eq!(party.refused, Vec::from_iter(refused), "{newest:?}");
    }
}

#[test]
fn programs_without_a_common_version_refuse_each_other_with_both_values() {
    for (ours, theirs, upgrade) in [
        (8..=8, 9..=9, "upgrade this program (shop 2.0)"),
        (9..=9, 8..=8, "upgrade the party's program (shop 2.0)"),
        (7..=8, 9..=10, "upgrade this program (shop 2.0)"),
        (9..=10, 7..=8, "upgrade the party's program (shop 2.0)"),
    ] {
        let newest = (*ours.end(), *theirs.end());
        let Outcome { calls, version, party } = call_twice(ours, theirs);
        let expected = CallError::Version { ours: newest.0, theirs: newest.1, about: "shop 2.0".into() };
        assert!(expected.to_string().ends_with(upgrade), "{expected}");
        assert_eq!(calls, [0; 2].map(|_| Err(expected.clone())));
        assert_eq!((version, &party.begun[..]), (None, &[][..]));
        assert_eq!(party.refused, [("bank 1.0".to_owned(), newest.0, newest.1)], "told once");
    }
}
