//! Carries requests from the primary to a party of another organisation, and answers back, through a relay that neither trusts.
//!
//! # Words
//!
//! - An *identity* ([`identity`]) is one key pair; its public text `U...` is what organisations tell each other.
//! - A *transport* ([`transport`]) carries packets, unreliably. [`nats`] is one, over a NATS server to which all dial out;
//!   [`memory`] is one for tests, with faults on request.
//! - A *session* is an agreement on secret keys between two identities (Noise `KK`). Whoever relays sees sizes and times,
//!   and can stop packets, nothing more.
//! - A *link* is a [`Caller`] at the primary and a [`Service`] at the party. A request is answered exactly once while both
//!   programs live; where one starts again, the other is told.
//! - An *incarnation* is one start of a program.
//! - The *hub* ([`hub`]) is the relay's configuration, made from a roster.
//!
//! What is in a request or an answer is no concern of this crate.

pub mod hub;
pub mod identity;
pub mod memory;
pub mod nats;
pub mod transport;

mod caller;
mod end;
mod errors;
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
pub use identity::{IdentityError, Keys, PublicIdentity};
pub use names::{Name, NameError, Route};
pub use nkey::NkeyError;
pub use service::{Answer, Service};
pub use session::PROTOCOL;
pub use settings::{Local, Peer, Settings};
pub use state::{Doing, State};
pub use transport::{Connection, Transport};
pub use wire::LARGEST_MESSAGE;
