//! How long a packet and its report take: the estimate of RFC 6298, from packets of their own serial numbers.

use std::time::Duration;

/// What is waited for a report before anything was measured.
const FIRST: Duration = Duration::from_millis(500);
/// Bounds of the time after which a packet without a report counts as lost.
const SHORTEST: Duration = Duration::from_millis(60);
const LONGEST: Duration = Duration::from_secs(10);

/// The estimate; every packet has a serial number, so that a packet sent again is never taken for the first one.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
}

impl Rtt {
    /// Takes a measurement in.
    pub(crate) fn measured(&mut self, latest: Duration) {
        self.latest = latest;
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(latest), latest / 2),
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(latest)) / 4;
                self.smoothed = Some((smoothed * 7 + latest) / 8);
            }
        }
    }

    /// The smoothed time, once one was measured.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// After this time without any report a packet counts as lost.
    pub(crate) fn timeout(&self) -> Duration {
        self.smoothed.map_or(FIRST, |smoothed| smoothed + self.variation * 4).clamp(SHORTEST, LONGEST)
    }

    /// A packet that was overtaken counts as lost after this time.
    pub(crate) fn overtaken(&self) -> Duration {
        self.smoothed.unwrap_or(FIRST).max(self.latest) * 9 / 8 + Duration::from_millis(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
