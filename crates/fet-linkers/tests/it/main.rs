//! Tests of the linkers, in one program.

mod cache;
mod figures;
mod messages;
mod schemas;
