//! Tests of the links between parties, in one program.

mod endings;
mod faults;
mod lanes;
mod nats;
mod support;
