//! The errors for refused settings: only their wording, not the checks.

use std::fmt::Display;

use fet_io::Mark;

/// A value that breaks a rule: the field, the rule and the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {rule}; it is {value}")]
pub struct Violation {
    /// The field, with dots between the names of nested tables.
    pub field: String,
    /// The rule, as a phrase that follows the field's name.
    pub rule: String,
    /// The given value.
    pub value: String,
}

impl Violation {
    /// Creates a violation of `rule` by `field`.
    pub fn new(field: impl Into<String>, rule: impl Into<String>, value: impl Display) -> Self {
        Self { field: field.into(), rule: rule.into(), value: value.to_string() }
    }

    /// Prefixes the field with the path of the enclosing table.
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        self.field = format!("{table}.{}", self.field);
        self
    }
}

/// The reason why a table of settings was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No plug-in with that name is linked into this program.
    #[error("`{slot}.kind` must be one of {known}; it is \"{kind}\"{hint}")]
    UnknownKind {
        /// The slot.
        slot: &'static str,
        /// The given name.
        kind: String,
        /// The known names, sorted.
        known: String,
        /// "; did you mean ...?" if a name is similar.
        hint: String,
    },
    /// The table does not name its plug-in.
    #[error("`{slot}.kind` is missing; it must be one of {known}")]
    MissingKind {
        /// The slot.
        slot: &'static str,
        /// The known names, sorted.
        known: String,
    },
    /// An unknown setting.
    #[error("`{field}` is not a setting{of}{}", if hint.is_empty() { format!("; the settings are {known}") } else { hint.clone() })]
    Unknown {
        /// The field, with dots between the names of nested tables.
        field: String,
        /// " of" and the plug-in that the settings belong to, if any.
        of: String,
        /// "; did you mean ...?" if a name is similar.
        hint: String,
        /// The known settings.
        known: String,
    },
    /// A setting without a default is missing.
    #[error("`{field}` is missing{}", if what.is_empty() { String::new() } else { format!("; it must be {what}") })]
    Missing {
        /// The field, with dots between the names of nested tables.
        field: String,
        /// The rule for the setting, as a phrase that follows "must be".
        what: String,
    },
    /// A field cannot be read.
    #[error("`{field}`: {message}")]
    Field {
        /// The field, with dots between the names of nested tables.
        field: String,
        /// The problem with the field.
        message: String,
    },
    /// A value breaks a rule.
    #[error(transparent)]
    Violation(#[from] Violation),
}

impl SettingsError {
    /// Returns the line of the TOML `text` that the error is about, as [`fet_io::excerpt`] does.
    pub fn excerpt(&self, file: &str, text: &str) -> Option<String> {
        let (field, mark) = match self {
            Self::UnknownKind { slot, .. } => (&format!("{slot}.kind"), Mark::Value),
            Self::MissingKind { slot, .. } => (&(*slot).to_string(), Mark::Name),
            Self::Unknown { field, .. } | Self::Missing { field, .. } => (field, Mark::Name),
            Self::Field { field, .. } => (field, Mark::Value),
            Self::Violation(violation) => (&violation.field, Mark::Value),
        };
        fet_io::excerpt(file, text, field, mark)
    }
}
