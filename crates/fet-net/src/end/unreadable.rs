//! Packets that claimed a session and were not authentic, at both ends of a link.

/// Number of unreadable packets.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    /// Packets in sessions that were replaced.
    before: u64,
    /// Packets at this end in this session; `at_other_end` counts those at the other end.
    pub(super) at_this_end: u32,
    pub(super) at_other_end: u32,
    /// Total at the time of the last progress.
    at_progress: u64,
}

impl Unreadable {
    /// Returns the total of all sessions.
    pub(crate) fn all(&self) -> u64 {
        self.before + u64::from(self.at_this_end) + u64::from(self.at_other_end)
    }

    /// Returns the number of packets since the last progress.
    pub(crate) fn since_progress(&self) -> u64 {
        self.all().saturating_sub(self.at_progress)
    }

    pub(super) fn session_ends(&mut self) {
        (self.before, self.at_this_end, self.at_other_end) = (self.all(), 0, 0);
    }

    pub(super) fn progress(&mut self) {
        self.at_progress = self.all();
    }
}
