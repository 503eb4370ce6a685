//! Exchanges over a transport that does its worst: each comes through exactly once, and bit-equal.

mod support;

use std::time::Duration;

use fet_net::memory::{Faults, pair};
use fet_net::{Caller, Service};
use support::{Mirror, Pair, quick, running};

#[test]
fn a_thin_path() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults::default());
    let mut caller = pairing.caller(here, quick());
    let service = pairing.service(there, quick());
    let mirror = running(service, Mirror::default(), || {
        let peer = caller.wait_for(Duration::from_secs(5), &mut |_| {}).unwrap();
        assert_eq!(peer.about, "shop 1");
        assert_eq!(caller.call(b"abc").unwrap(), b"cba");
        assert_eq!(caller.call(b"").unwrap(), b"");
        let large: Vec<u8> = (0..30_000_000_u32).map(|at| (at / 7) as u8).collect();
        let answer = caller.call(&large).unwrap();
        assert!(answer.iter().eq(large.iter().rev()));
    });
    assert_eq!(mirror.requests, 3);
    assert_eq!(mirror.begun.len(), 1);
}
