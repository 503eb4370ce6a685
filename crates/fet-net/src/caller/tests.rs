//! Programs of two versions refuse each other, authenticated by their keys and before any request.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::identity::Keys;
use crate::memory::{Faults, pair};
use crate::service::{Answer, Service};
use crate::session::PROTOCOL;

#[derive(Default)]
struct Refusals {
    refused: Vec<(String, u16, u16)>,
}

impl Answer for Refusals {
    fn begins(&mut self, peer: &Peer) {
        panic!("{peer:?} begins");
    }

    fn answer(&mut self, _: Vec<u8>) -> Vec<u8> {
        panic!("a request came");
    }

    fn refused(&mut self, peer: &Peer, ours: u16) {
        self.refused.push((peer.about.clone(), peer.version, ours));
    }
}

#[test]
fn another_version_is_refused_with_both_values() {
    for (ours, theirs) in [(PROTOCOL, PROTOCOL + 1), (PROTOCOL + 1, PROTOCOL)] {
        let local = |version: u16, about: &str| Local { version, ..Local::new(Keys::generate(), about) };
        let (bank, shop) = (local(ours, "bank 1.0"), local(theirs, "shop 2.0"));
        let name = |text: &str| text.parse().unwrap();
        let route = Route { run: name("run"), primary: name("bank"), party: name("shop") };
        let (here, there) = pair(&Faults::default());
        let (bank_key, shop_key) = (bank.keys.public(), shop.keys.public());
        let mut caller = Caller::new(here, bank, route.clone(), shop_key, Settings::default());
        let mut service = Service::new(there, shop, route, bank_key, Settings::default());
        let (stop, mut refusals) = (AtomicBool::new(false), Refusals::default());
        std::thread::scope(|scope| {
            scope.spawn(|| service.serve(&mut refusals, &stop));
            let calls = [0; 2].map(|_| caller.call(b"request"));
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
            let expected = CallError::Version { ours, theirs, about: "shop 2.0".into() };
            assert_eq!(calls, [0; 2].map(|_| Err(expected.clone())));
        });
        assert_eq!(refusals.refused, [("bank 1.0".to_owned(), ours, theirs)], "told once");
    }
}
