//! Runs the parties of an experiment as processes that reach each other through a server, disturbs them, and holds what they
//! write against a simulation of the same experiment, byte for byte; or measures what it costs that they are processes.
//!
//! It knows `fet` and `nats-server` from outside only, as those who run them do. What one process alone gets wrong is
//! `fet-abuse`'s matter. It needs a Unix: signals have no equal on other systems.

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
