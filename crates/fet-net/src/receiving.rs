//! Arriving chunks of one message, in any order and possibly repeated.

use crate::wire::{CHUNK, Message, Report, WINDOW};

/// Message that is arriving.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) message: Message,
    bytes: Vec<u8>,
    base: u32,
    /// Bit mask of the chunks from `base` on that arrived.
    beyond: u128,
}

impl Receiving {
    /// Reserves memory for a message. The memory is the system's zero pages until chunks arrive, so that an
    /// announced size uses none.
    pub(crate) fn new(message: Message) -> Self {
        Self { message, bytes: vec![0; message.total as usize], base: 0, beyond: 0 }
    }

    /// Takes a chunk whose length [`crate::wire::Body::decode`] has checked. Returns true if the chunk is
    /// new.
    pub(crate) fn take(&mut self, index: u32, chunk: &[u8]) -> bool {
        let Some(at) = index.checked_sub(self.base).filter(|at| *at < WINDOW) else { return false };
        if self.beyond >> at & 1 == 1 {
            return false;
        }
        let start = index as usize * CHUNK;
        self.bytes[start..start + chunk.len()].copy_from_slice(chunk);
        self.beyond |= 1 << at;
        let whole = self.beyond.trailing_ones();
        self.base += whole;
        self.beyond = self.beyond.checked_shr(whole).unwrap_or(0);
        true
    }

    /// Returns true if all chunks have arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.base == self.message.chunks()
    }

    /// Returns the chunks that arrived, for the other end; the caller completes the report.
    pub(crate) fn report(&self) -> Report {
        Report { number: self.message.number, base: self.base, beyond: self.beyond, ..Report::default() }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rand::seq::SliceRandom;
    use rand::{Rng, RngExt, SeedableRng};

    use super::*;
    use crate::rtt::Rtt;
    use crate::sending::{Pace, Sending};
    use crate::wire::Purpose;

    /// Runs sender and receiver without packets, in rounds that lose, repeat and reorder chunks and lose
    /// reports.
    #[test]
    fn what_is_sent_arrives_whatever_happens() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        for total in [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK, 300 * CHUNK - 5] {
            let mut original = vec![0; total];
            rng.fill_bytes(&mut original);
            let message = Message { number: 7, total: total as u64, purpose: Purpose::Content };
            let (mut sending, mut receiving) = (Sending::new(message), Receiving::new(message));
            let (mut pace, mut rtt) = (Pace::default(), Rtt::default());
            let (mut now, mut serial, mut rounds) = (Instant::now(), 0, 0);
            while !sending.is_done() {
                let mut under_way = Vec::new();
                while let Some(index) = sending.next(now, &mut pace, &rtt) {
                    serial += 1;
                    sending.sent(index, serial, now, &mut rtt);
                    let copies = [0, 1, 1, 1, 2][rng.random_range(0..5)];
                    under_way.extend(vec![(index, serial); copies]);
                }
                under_way.shuffle(&mut rng);
                let mut echo = 0;
                for (index, serial) in under_way {
                    receiving.take(index, &original[message.range(index)]);
                    echo = serial;
                }
                now += Duration::from_millis(rng.random_range(1..200));
                if rng.random_bool(0.8) {
                    let report = Report { echo, ..receiving.report() };
                    sending.reported(&report, now, &mut pace, &mut rtt);
                }
                rounds += 1;
                assert!(rounds < 10_000, "{total} bytes: no end");
            }
            assert!(receiving.is_done());
            assert_eq!(receiving.into_bytes(), original);
        }
    }

    #[test]
    fn reports_that_contradict_what_was_sent_change_nothing() {
        let message = Message { number: 7, total: 10 * CHUNK as u64, purpose: Purpose::Content };
        let (mut sending, mut pace, mut rtt) = (Sending::new(message), Pace::default(), Rtt::default());
        let now = Instant::now();
        let index = sending.next(now, &mut pace, &rtt).unwrap();
        sending.sent(index, 1, now, &mut rtt);
        for report in [
            Report { number: 7, base: 2, ..Report::default() },
            Report { number: 7, base: u32::MAX, ..Report::default() },
            Report { number: 8, base: 1, ..Report::default() },
            Report { number: 7, beyond: !1, echo: u64::MAX, ..Report::default() },
        ] {
            assert!(!sending.reported(&report, now, &mut pace, &mut rtt), "{report:?}");
        }
        assert!(sending.reported(
            &Report { number: 7, base: 1, ..Report::default() },
            now,
            &mut pace,
            &mut rtt
        ));
    }
}
