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
        // If the thread cannot start, the work continues without a display.
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
    use std::sync::mpsc::{Receiver, Sender};

    use super::*;

    /// Sends the time of each update and of each line.
    struct Sent {
        looks: Sender<Duration>,
        lines: Sender<Duration>,
    }

    impl ProgressDisplay for Sent {
        fn look(&mut self, elapsed: Duration) {
            let _ = self.looks.send(elapsed);
        }

        fn line(&mut self, elapsed: Duration) {
            let _ = self.lines.send(elapsed);
        }
    }

    /// Returns a display, and the updates and lines that it shows.
    fn display() -> (Sent, Receiver<Duration>, Receiver<Duration>) {
        let ((looks, shown), (lines, written)) = (mpsc::channel(), mpsc::channel());
        (Sent { looks, lines }, shown, written)
    }

    #[test]
    fn shows_long_work_until_it_ends() {
        let pace = Pace { look: Duration::from_millis(1), line: Duration::from_millis(20) };
        let (mut display, looks, lines) = display();
        // The work ends after its second line, however slow the machine is.
        let line = || lines.recv_timeout(Duration::from_secs(60)).expect("a line");
        let lines = showing(pace, &mut display, || [line(), line()]);
        assert!(lines[0] >= pace.line && lines[1] - lines[0] >= pace.line, "{lines:?}");
        let looks: Vec<Duration> = looks.try_iter().collect();
        assert!(looks.len() >= 2 && looks.contains(&lines[0]) && looks.is_sorted(), "{looks:?}");
    }

    #[test]
    fn shows_nothing_of_short_work() {
        let (mut display, looks, lines) = display();
        let pace = Pace { look: Duration::from_secs(3600), ..PACE };
        // The end of the work also ends the thread, which would otherwise wait for an hour.
        showing(pace, &mut display, || ());
        assert_eq!((looks.try_iter().count(), lines.try_iter().count()), (0, 0));
    }

    #[test]
    fn ends_with_work_that_panics() {
        let (mut display, ..) = display();
        let work = || showing(PACE, &mut display, || panic!("the work fails"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
    }
}
