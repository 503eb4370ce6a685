//! Packets that claimed a session and were not authentic, at both ends of a link.

/// How many there were.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    /// In sessions that were replaced.
    before: u64,
    /// Here and at the other end, in this session.
    pub(super) here: u32,
    pub(super) there: u32,
    /// In all, when something last went through.
    at_progress: u64,
}

impl Unreadable {
    /// In all sessions.
    pub(crate) fn all(&self) -> u64 {
        self.before + u64::from(self.here) + u64::from(self.there)
    }

    /// Since something went through.
    pub(crate) fn since_progress(&self) -> u64 {
        self.all().saturating_sub(self.at_progress)
    }

    pub(super) fn session_ends(&mut self) {
        (self.before, self.here, self.there) = (self.all(), 0, 0);
    }

    pub(super) fn progress(&mut self) {
        self.at_progress = self.all();
    }
}
