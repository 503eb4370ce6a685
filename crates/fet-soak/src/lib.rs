//! Runs the parties of an experiment as processes that communicate through a server, disturbs them, and
//! compares their files with a simulation of the same experiment, byte for byte. It can also measure the
//! overhead of separate processes.
//!
//! The soak uses `fet` and `nats-server` only as their users do. `fet-abuse` tests faults of single
//! processes. The soak needs Unix, because other systems lack signals.

#![cfg(unix)]

pub mod areas;
pub mod case;
mod compare;
pub mod experiment;
pub mod kit;
mod message;
mod overhead;
mod process;
mod proxy;
mod server;
mod tables;
mod work;
mod world;

pub use overhead::overhead;
pub use process::stop;
pub use work::{Arguments, work};
