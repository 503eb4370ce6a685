//! Case of the soak, with its result. The areas define the actions.

use std::path::Path;

use rand_chacha::ChaCha8Rng;

use crate::kit::Kit;

/// Kind of fault; a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A written file differs from the file of the simulation.
    WrongBytes,
    /// A process panicked, or ended by a signal that the case did not send.
    Panic,
    /// A process did not end in time.
    Hang,
    /// A process ended with a wrong exit code.
    WrongCode,
    /// A message does not name the problem, or exposes internals of the program.
    Unclear,
    /// An existing file was lost or changed, or a file was left behind.
    Files,
    /// A private value was sent unencrypted.
    Leak,
}

impl Kind {
    /// All kinds, in the order of the columns.
    pub const ALL: [Self; 7] =
        [Self::WrongBytes, Self::Panic, Self::Hang, Self::WrongCode, Self::Unclear, Self::Files, Self::Leak];

    /// Returns the column's title.
    pub fn name(self) -> &'static str {
        match self {
            Self::WrongBytes => "wrong bytes",
            Self::Panic => "panic",
            Self::Hang => "hang",
            Self::WrongCode => "wrong exit code",
            Self::Unclear => "unclear message",
            Self::Files => "files lost or left",
            Self::Leak => "leak",
        }
    }
}

/// Fault found by a case.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: Kind,
    /// Description of the fault.
    pub what: String,
}

/// End of a case without faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The run wrote the same bytes as the simulation.
    Equal,
    /// The run was refused, as expected.
    Refused,
}

impl End {
    /// All ends, in the order of the columns.
    pub const ALL: [Self; 2] = [Self::Equal, Self::Refused];

    /// Returns the column's title.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Refused => "refused as\nis right",
        }
    }
}

/// Result of a case.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// End of the case.
    pub end: End,
    /// Faults of the case.
    pub faults: Vec<Fault>,
    /// Notes for repeating the case: the actions with their random choices and times.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Creates a verdict without faults.
    pub(crate) fn new(end: End) -> Self {
        Self { end, faults: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn fault(&mut self, kind: Kind, what: impl Into<String>) {
        self.faults.push(Fault { kind, what: what.into() });
    }

    pub(crate) fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }
}

/// Action of a case, in a separate folder.
pub(crate) type Run = Box<dyn Fn(&Kit, &Path, &mut ChaCha8Rng) -> anyhow::Result<Verdict>>;

/// Case of the soak.
pub struct Case {
    /// Area of the case.
    pub area: &'static str,
    /// Name of the action.
    pub name: String,
    /// True if the case belongs to the short form.
    pub short: bool,
    /// True if the action depends on the seed.
    pub seeded: bool,
    pub(crate) run: Run,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.title())
    }
}

impl Case {
    /// Creates a case of the long form.
    pub(crate) fn new(
        area: &'static str,
        name: impl Into<String>,
        run: impl Fn(&Kit, &Path, &mut ChaCha8Rng) -> anyhow::Result<Verdict> + 'static,
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
    pub fn title(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }
}
