//! Case of a suite, with its result. The areas of each suite define the actions.

use std::path::Path;

use rand_chacha::ChaCha8Rng;

/// Kind of fault; a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A written file differs from the file of the simulation.
    WrongBytes,
    /// A process panicked.
    Panic,
    /// A process ended by a signal that the case did not send.
    Abort,
    /// A process did not end in time.
    Hang,
    /// A reader took more than a second.
    Slow,
    /// An invalid input was accepted, or a valid input was read wrongly.
    WrongAccept,
    /// A valid input was refused.
    WrongRefusal,
    /// A process ended with a wrong exit code.
    WrongCode,
    /// A message does not name the problem, or exposes internals of the program.
    Unclear,
    /// An existing file was lost or changed, or a file was left behind.
    Files,
    /// A private value was sent unencrypted.
    Leak,
}

impl FaultKind {
    /// All kinds, in the order of the columns.
    pub(crate) const ALL: [Self; 11] = [
        Self::WrongBytes,
        Self::Panic,
        Self::Abort,
        Self::Hang,
        Self::Slow,
        Self::WrongAccept,
        Self::WrongRefusal,
        Self::WrongCode,
        Self::Unclear,
        Self::Files,
        Self::Leak,
    ];

    /// Returns the column's title.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WrongBytes => "wrong bytes",
            Self::Panic => "panic",
            Self::Abort => "abort",
            Self::Hang => "hang",
            Self::Slow => "slow",
            Self::WrongAccept => "wrong accept",
            Self::WrongRefusal => "wrong refusal",
            Self::WrongCode => "wrong exit code",
            Self::Unclear => "unclear message",
            Self::Files => "files lost or left",
            Self::Leak => "leak",
        }
    }
}

/// Fault found by a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Description of the fault.
    pub what: String,
}

impl CaseFault {
    pub(crate) fn new(kind: FaultKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }
}

/// End of a case without faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseEnd {
    /// The commands ended as the case states, or the input was read correctly.
    Expected,
    /// The run wrote the same bytes as the simulation.
    Equal,
    /// The run or the input was refused, as expected.
    Refused,
}

impl CaseEnd {
    /// All ends, in the order of the columns.
    pub(crate) const ALL: [Self; 3] = [Self::Expected, Self::Equal, Self::Refused];

    /// Returns the column's title.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Expected => "as expected",
            Self::Equal => "equal",
            Self::Refused => "refused as\nis right",
        }
    }
}

/// Result of a case.
#[derive(Debug, Clone)]
pub(crate) struct CaseResult {
    /// End of the case.
    pub(crate) end: CaseEnd,
    /// Faults of the case.
    pub(crate) faults: Vec<CaseFault>,
    /// Notes for repeating the case: the actions with their random choices and times.
    pub(crate) notes: Vec<String>,
}

impl CaseResult {
    /// Creates a verdict without faults.
    pub(crate) fn new(end: CaseEnd) -> Self {
        Self { end, faults: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn fault(&mut self, kind: FaultKind, what: impl Into<String>) {
        self.faults.push(CaseFault::new(kind, what));
    }

    pub(crate) fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }
}

/// Action of a case in a separate folder, with the shared resources of its suite.
type Run<C> = Box<dyn Fn(&C, &Path, &mut ChaCha8Rng) -> anyhow::Result<CaseResult>>;

/// Case of a suite whose cases share a `C`.
pub(crate) struct Case<C> {
    /// Area of the case.
    pub(crate) area: &'static str,
    /// Name of the action.
    pub(crate) name: String,
    /// True if the case belongs to the short form.
    pub(crate) short: bool,
    /// True if the action depends on the seed of its generator.
    pub(crate) seeded: bool,
    pub(crate) run: Run<C>,
}

impl<C> std::fmt::Debug for Case<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.title())
    }
}

impl<C> Case<C> {
    /// Creates a case of the long form.
    pub(crate) fn new(
        area: &'static str,
        name: impl Into<String>,
        run: impl Fn(&C, &Path, &mut ChaCha8Rng) -> anyhow::Result<CaseResult> + 'static,
    ) -> Self {
        Self { area, name: name.into(), short: false, seeded: false, run: Box::new(run) }
    }

    pub(crate) fn short(mut self, short: bool) -> Self {
        self.short = short;
        self
    }

    pub(crate) fn seeded(mut self) -> Self {
        self.seeded = true;
        self
    }

    /// Returns `area/name`.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }
}
