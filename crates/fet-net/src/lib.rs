//! Carries requests from the primary to a party of another organisation, and answers back, through a relay
//! that neither end trusts.
//!
//! # Terms
//!
//! - An *identity* ([`identity`]) is one key pair. Organisations exchange its public text `U...`.
//! - A *transport* ([`transport`]) carries packets unreliably. [`nats`] is a transport over a NATS server
//!   that all parties dial; [`memory`] is a transport for tests, with faults on request.
//! - A *session* is an agreement on secret keys between two identities (Noise `KK`). A relay sees sizes and
//!   times, and can only stop packets.
//! - A *link* is a [`Caller`] at the primary and a [`Service`] at the party. A request is answered exactly
//!   once while both programs run. If one program restarts, the other end detects it.
//! - An *instance* is one start of a program, with a random ID.
//! - The *hub* ([`hub`]) is the relay's configuration, generated from a roster.
//!
//! This crate does not interpret requests and answers.

pub mod hub;
pub mod identity;
pub mod memory;
pub mod nats;
pub mod transport;

mod caller;
mod end;
mod errors;
mod heartbeat;
mod names;
mod nkey;
mod receiving;
mod rtt;
mod sending;
mod service;
mod session;
mod settings;
mod state;
mod wire;

pub use caller::Caller;
pub use errors::CallError;
pub use heartbeat::Heartbeat;
pub use identity::{IdentityError, Keys, PublicIdentity};
pub use names::{Name, NameError, Route};
pub use nkey::NkeyError;
pub use service::{Answer, Lanes, Programs, Service};
pub use session::PROTOCOL;
pub use settings::{Local, Peer, Settings};
pub use state::{Activity, State};
pub use transport::{Connection, Transport};
pub use wire::LARGEST_MESSAGE;
