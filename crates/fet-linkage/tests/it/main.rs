//! Tests of the CLKs, in one program.

mod clkhash;
mod clkhash_refusals;
