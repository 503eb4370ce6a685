//! Tests of the whole program: hostile and careless inputs ([`abuse`]), parties as disturbed processes
//! ([`soak`]), damaged inputs of every reader ([`fuzz`]), figures of other implementations ([`golden`]), and
//! the workloads of the benchmarks ([`workload`]).
//!
//! `abuse` and `soak` run `fet` as processes, as a user does. They need Unix, because other systems lack
//! signals, FIFOs and resource limits.

#[cfg(unix)]
pub mod abuse;
mod case;
#[cfg(unix)]
mod folder;
pub mod fuzz;
pub mod golden;
mod message;
mod mutate;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod runner;
#[cfg(unix)]
pub mod soak;
mod tally;
pub mod workload;

#[cfg(unix)]
pub use process::stop;

// The plug-ins of the program: the linker drops a crate that no code names.
use fet as _;
use fet_baselines as _;
use fet_components as _;
use fet_data as _;
use fet_linkers as _;
