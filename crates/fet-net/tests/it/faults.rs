//! Exchanges over a transport with many faults: each one completes exactly once, bit for bit.

#![expect(clippy::unwrap_used, reason = "the function that tests share panics where a test would")]

use std::time::Duration;

use crate::support::{Pair, millis, quick, running};
use fet_net::memory::{Faults, pair};
use fet_net::{Answer, Peer, Settings};
use rand::{Rng, RngExt, SeedableRng};

const JOIN: Duration = Duration::from_secs(20);

/// Answers a request, whose first bytes are its number, with bytes that depend on the whole request. Each
/// number arrives once.
#[derive(Default)]
struct Counted {
    next: u64,
    largest: usize,
}

fn expected(request: &[u8], largest: usize) -> Vec<u8> {
    let digest = fet_io::sha256(request);
    let mut answer = digest.to_vec();
    let mut random = rand_chacha::ChaCha8Rng::from_seed(digest);
    let size = random.random_range(0..=largest);
    answer.resize(32 + size, 0);
    random.fill_bytes(&mut answer[32..]);
    answer
}

impl Answer for Counted {
    fn begins(&mut self, _: &Peer) {
        assert_eq!(self.next, 0, "begins once");
    }

    fn answer(&mut self, request: Vec<u8>) -> Vec<u8> {
        assert_eq!(request[..8], self.next.to_le_bytes(), "request {} comes next", self.next);
        self.next += 1;
        expected(&request, self.largest)
    }
}

/// Makes `count` exchanges of up to `largest` bytes each way.
fn exchange(faults: Faults, count: u64, largest: usize) -> fet_net::State {
    let pairing = Pair::new();
    let (here, there) = pair(&faults);
    let settings = Settings { silence: Duration::from_secs(20), ..quick() };
    let mut caller = pairing.caller(here, settings);
    let service = pairing.service(there, settings);
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(faults.seed);
    let mut state = None;
    let counted = running(service, Counted { next: 0, largest }, || {
        caller.wait_for(JOIN, &mut |_| {}).unwrap();
        for number in 0..count {
            // Small sizes are as frequent as large ones.
            let size = random.random_range(0..=largest) >> random.random_range(0..24_u32);
            let mut request = vec![0; 8 + size];
            random.fill_bytes(&mut request);
            request[..8].copy_from_slice(&number.to_le_bytes());
            let answer = caller.call(&request).unwrap();
            assert!(answer == expected(&request, largest), "request {number} of {size} bytes");
        }
        state = Some(caller.state());
    });
    assert_eq!(counted.next, count);
    state.unwrap()
}

#[test]
fn without_faults() {
    let state = exchange(Faults::default(), 300, 200_000);
    assert_eq!(state.unreadable, 0);
}

#[test]
fn with_loss() {
    exchange(Faults { loss: 0.1, seed: 1, ..Faults::default() }, 150, 300_000);
}

#[test]
fn with_repetition_and_reordering() {
    exchange(Faults { repetition: 0.3, delay: millis(0, 20), seed: 2, ..Faults::default() }, 100, 1_000_000);
}

#[test]
fn with_alteration() {
    let state = exchange(Faults { alteration: 0.05, seed: 3, ..Faults::default() }, 150, 300_000);
    assert!(state.unreadable > 0, "{state:?}");
}

#[test]
fn with_everything() {
    let faults =
        Faults { loss: 0.05, repetition: 0.05, alteration: 0.02, delay: millis(1, 8), rate: None, seed: 4 };
    exchange(faults, 100, 400_000);
}

#[test]
fn with_large_messages() {
    let faults =
        Faults { loss: 0.01, repetition: 0.02, alteration: 0.01, delay: millis(1, 4), rate: None, seed: 5 };
    exchange(faults, 6, 20_000_000);
}

/// At 1 MB/s, a window of 8 MB takes longer to leave than the timeout of a packet.
#[test]
fn with_a_slow_path() {
    let faults = Faults { rate: Some(1_000_000), delay: millis(20, 21), seed: 6, ..Faults::default() };
    let pairing = Pair::new();
    let (here, there) = pair(&faults);
    let settings = Settings { heartbeat: Duration::from_secs(1), ..quick() };
    let mut caller = pairing.caller(here, Settings { silence: Duration::from_secs(15), ..settings });
    let service = pairing.service(there, settings);
    running(service, Counted { next: 0, largest: 10 }, || {
        caller.wait_for(JOIN, &mut |_| {}).unwrap();
        let request = vec![0; 8_000_000];
        assert!(caller.call(&request).unwrap() == expected(&request, 10));
        let state = caller.state();
        assert!(state.sent < 10_000_000, "little is sent again: {state:?}");
    });
}

#[test]
fn with_a_path_that_is_cut_for_a_while() {
    let pairing = Pair::new();
    let (here, there) = pair(&Faults { delay: millis(1, 2), ..Faults::default() });
    let settings = Settings { silence: Duration::from_secs(10), ..quick() };
    let cutter = here.clone();
    let mut caller = pairing.caller(here, settings);
    let service = pairing.service(there, settings);
    let counted = running(service, Counted { next: 0, largest: 20_000_000 }, || {
        caller.wait_for(JOIN, &mut |_| {}).unwrap();
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| {
                for number in 0..10_u64 {
                    let mut request = vec![number as u8; 20_000_000];
                    request[..8].copy_from_slice(&number.to_le_bytes());
                    assert!(caller.call(&request).unwrap() == expected(&request, 20_000_000));
                }
            });
            while !calls.is_finished() {
                for (cut, time) in [(false, 100), (true, 400)] {
                    cutter.cut(cut);
                    std::thread::sleep(Duration::from_millis(time));
                }
                cutter.cut(false);
            }
        });
    });
    assert_eq!(counted.next, 10);
}
