//! The `fet` command, as a library so that tests can call what the command does.
//!
//! The only crate that names every plug-in crate: inventory drops a crate that nothing names.

pub mod experiment_file;
pub mod golden;
pub mod link;
pub mod list;
pub mod output;
pub mod plot;
pub mod run;
mod watch;

// Plug-in crates. A linker, encoder, ... of your own: add its crate here and to Cargo.toml.
use custom_linker as _;
use fet_baselines as _;
use fet_data as _;
