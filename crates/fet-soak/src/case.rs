//! A case: what is done, and how it ended. What is done lies with the areas.

use std::path::Path;

use rand_chacha::ChaCha8Rng;

use crate::kit::Kit;

/// A kind of fault; a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What was written differs from what the simulation wrote.
    WrongBytes,
    /// A process panicked, or a signal that nobody sent ended it.
    Panic,
    /// A process was not done in time.
    Hang,
    /// A process ended with another exit code than is right.
    WrongCode,
    /// A message does not say what was wrong, or says it in words of the program's inside.
    Unclear,
    /// A file that was there before is lost or changed, or one was left behind.
    Files,
    /// What only its owner may know went over the wire in the clear.
    Leak,
}

impl Kind {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 7] =
        [Self::WrongBytes, Self::Panic, Self::Hang, Self::WrongCode, Self::Unclear, Self::Files, Self::Leak];

    /// The column's title.
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

/// Something that is not as it should be.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Its column.
    pub kind: Kind,
    /// What it is.
    pub what: String,
}

/// How a case ended, where nothing was at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With the bytes of the simulation.
    Equal,
    /// With a refusal, as it should be.
    Refused,
}

impl End {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 2] = [Self::Equal, Self::Refused];

    /// The column's title.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Refused => "refused as\nis right",
        }
    }
}

/// How a case ended.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What it came to.
    pub end: End,
    /// What was wrong.
    pub faults: Vec<Fault>,
    /// What was done, for whoever repeats it: what was chosen by chance, and when.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Nothing at fault yet.
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

/// What a case does in a folder of its own.
pub(crate) type Run = Box<dyn Fn(&Kit, &Path, &mut ChaCha8Rng) -> anyhow::Result<Verdict>>;

/// A case.
pub struct Case {
    /// The area.
    pub area: &'static str,
    /// What is done.
    pub name: String,
    /// Whether it belongs to the short form.
    pub short: bool,
    /// Whether other seeds make other cases of it.
    pub seeded: bool,
    pub(crate) run: Run,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.title())
    }
}

impl Case {
    /// A case of the long form.
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

    /// `area/name`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }
}
