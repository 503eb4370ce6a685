//! Progress of links that take long: at a party the number of linked rows, at the primary the parties that still link.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use fet_federation::secondary::LinkCount;

/// Intervals of a progress display.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Time between two updates of the status.
    pub(super) look: Duration,
    /// Time between two lines of the log.
    pub(super) line: Duration,
}

/// Intervals for people.
pub(super) const PACE: Pace = Pace { look: Duration::from_secs(1), line: Duration::from_secs(30) };

/// Receives the progress of long work.
pub(super) trait ProgressDisplay: Send {
    /// Updates the status of the process.
    fn look(&mut self, elapsed: Duration);

    /// Writes a line of the log.
    fn line(&mut self, elapsed: Duration);
}

/// Does `work`, and shows its progress from another thread until the work ends.
pub(super) fn showing<T>(pace: Pace, display: &mut dyn ProgressDisplay, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        // Dropping this end stops the thread, also if the work panics.
        let (_working, ended) = mpsc::channel::<()>();
        let show = move || {
            let (began, mut written) = (Instant::now(), Duration::ZERO);
            while ended.recv_timeout(pace.look) == Err(RecvTimeoutError::Timeout) {
                let elapsed = began.elapsed();
                display.look(elapsed);
                if elapsed - written >= pace.line {
                    written = elapsed;
                    display.line(elapsed);
                }
            }
        };
        // If the thread cannot start, the work has no display.
        let _ = std::thread::Builder::new().name("fet-progress".into()).spawn_scoped(scope, show);
        work()
    })
}

/// Returns the progress of a search for links in words.
///
/// Some linkers report all rows at the end of the search; until then the text names only the elapsed time.
pub(super) fn links_in_words(count: &LinkCount, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match count.rows() {
        (0, of) => format!("linking {of} rows for {seconds} s"),
        (linked, of) => format!("linked {linked} of {of} rows in {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts updates, and keeps the times of lines.
    #[derive(Default)]
    struct Counted {
        looks: usize,
        lines: Vec<Duration>,
    }

    impl ProgressDisplay for Counted {
        fn look(&mut self, _: Duration) {
            self.looks += 1;
        }

        fn line(&mut self, elapsed: Duration) {
            self.lines.push(elapsed);
        }
    }

    #[test]
    fn shows_long_work_until_it_ends() {
        let pace = Pace { look: Duration::from_millis(5), line: Duration::from_millis(100) };
        let mut shown = Counted::default();
        let result = showing(pace, &mut shown, || {
            std::thread::sleep(Duration::from_millis(350));
            7
        });
        assert_eq!(result, 7);
        assert!(shown.looks > shown.lines.len(), "{} updates", shown.looks);
        assert!((1..=3).contains(&shown.lines.len()), "{:?}", shown.lines);
        let gaps = shown.lines.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(
            shown.lines[0] >= pace.line && gaps.min().is_none_or(|gap| gap >= pace.line),
            "{:?}",
            shown.lines
        );
        let looks = shown.looks;
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(shown.looks, looks);
    }

    #[test]
    fn shows_nothing_of_short_work() {
        let mut shown = Counted::default();
        let began = Instant::now();
        showing(PACE, &mut shown, || ());
        assert_eq!((shown.looks, shown.lines.len()), (0, 0));
        assert!(began.elapsed() < PACE.look);
    }

    #[test]
    fn ends_with_work_that_panics() {
        let mut shown = Counted::default();
        let work = || showing(PACE, &mut shown, || panic!("the work fails"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
    }
}
