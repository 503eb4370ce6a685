//! Plug-ins: turns a name in a TOML file into a component.
//!
//! A *slot* is a trait (`dyn Linker`, `dyn Encoder`, ...). A *recipe* is the typed, checked settings of one
//! implementation of it. A [`Plugin`] ties a `kind` to a recipe and is submitted through `inventory` from the
//! file that implements it; a [`Slot`] is the field of an experiment that holds one recipe by its kind. This
//! module knows no slot and no plug-in by name, and it does not read files.
//!
//! inventory drops a crate that nothing references: a binary references a plug-in crate by `use that_crate as
//! _;`. inventory has no order either: [`plugins`] sorts by name.

pub(crate) mod error;
mod plugin;
mod recipe;
mod slot;

pub use error::{SettingsError, Violation};
pub use fet_eval::did_you_mean;
pub use plugin::{Plugin, plugins, schema_of_inner};
pub use recipe::{Recipe, SlotKind};
pub use slot::Slot;
