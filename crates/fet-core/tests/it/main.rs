//! Tests of the messages between parties.

mod codec;
