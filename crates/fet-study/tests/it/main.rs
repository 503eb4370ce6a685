//! Tests of the ablation harness, in one program.

mod ablate;
mod browser;
mod contributions;
mod defences;
mod engines;
mod study;
#[cfg(unix)]
mod sweep;
mod tune;
