//! Round-trip time of a packet and its report: the estimate of RFC 6298, from packets with unique serial
//! numbers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time to wait for a report before the first measurement.
const FIRST: Duration = Duration::from_millis(500);
/// Bounds of the time after which a packet without a report counts as lost.
const SHORTEST: Duration = Duration::from_millis(60);
const LONGEST: Duration = Duration::from_secs(10);
/// Number of packets whose time of sending is kept.
const KEPT: usize = 1024;

/// Estimate of the round-trip time. Every packet has a serial number, so that a repeated packet is never
/// taken for the first one.
#[derive(Debug, Default)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
    /// Shortest time so far.
    shortest: Option<Duration>,
    /// Times at which the last packets were sent, by serial number, including packets that were sent again
    /// since.
    sent: VecDeque<(u64, Instant)>,
}

impl Rtt {
    /// Notes a packet that is sent; serial numbers increase.
    pub(crate) fn sent(&mut self, serial: u64, now: Instant) {
        if self.sent.len() == KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back((serial, now));
    }

    /// Notes that a packet arrived, from a report that the other end held for a time. Each packet counts
    /// once.
    pub(crate) fn echoed(&mut self, serial: u64, held: Duration, now: Instant) {
        let at = self.sent.partition_point(|(sent, _)| *sent < serial);
        if let Some((found, sent)) = self.sent.get(at).copied()
            && found == serial
        {
            self.measured(now.duration_since(sent).saturating_sub(held));
            self.sent.drain(..=at);
        }
    }

    fn measured(&mut self, latest: Duration) {
        self.latest = latest;
        self.shortest = Some(self.shortest.map_or(latest, |shortest| shortest.min(latest)));
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(latest), latest / 2),
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(latest)) / 4;
                self.smoothed = Some((smoothed * 7 + latest) / 8);
            }
        }
    }

    /// Returns the smoothed time, or `None` before the first measurement.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Returns the time that the last packet spent in queues. Up to twice the shortest time counts as the path's
    /// own variation.
    pub(crate) fn queued(&self) -> Duration {
        self.latest.saturating_sub(self.shortest.unwrap_or_default() * 2)
    }

    /// Returns the time after which a packet without any report counts as lost.
    pub(crate) fn timeout(&self) -> Duration {
        self.smoothed.map_or(FIRST, |smoothed| smoothed + self.variation * 4).clamp(SHORTEST, LONGEST)
    }

    /// Returns the time after which an overtaken packet counts as lost.
    pub(crate) fn overtaken(&self) -> Duration {
        self.smoothed.unwrap_or(FIRST).max(self.latest) * 9 / 8 + Duration::from_millis(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_measured_once_and_an_unknown_one_never() {
        let (mut rtt, start) = (Rtt::default(), Instant::now());
        let millis = Duration::from_millis;
        for serial in [3, 4, 6] {
            rtt.sent(serial, start);
        }
        for serial in [0, 5, 7, u64::MAX] {
            rtt.echoed(serial, millis(0), start + millis(900));
            assert_eq!(rtt.smoothed(), None, "{serial}");
        }
        rtt.echoed(4, millis(20), start + millis(100));
        assert_eq!(rtt.smoothed(), Some(millis(80)));
        for serial in [3, 4] {
            rtt.echoed(serial, millis(0), start + millis(900));
        }
        assert_eq!(rtt.smoothed(), Some(millis(80)));
    }

    #[test]
    fn the_estimate_follows_what_is_measured() {
        let mut rtt = Rtt::default();
        assert_eq!((rtt.smoothed(), rtt.timeout()), (None, FIRST));
        for _ in 0..100 {
            rtt.measured(Duration::from_millis(100));
        }
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(100)));
        assert!(rtt.timeout() < Duration::from_millis(110), "{:?}", rtt.timeout());
        rtt.measured(Duration::from_millis(500));
        assert!(rtt.timeout() > Duration::from_millis(400), "{:?}", rtt.timeout());
    }
}
