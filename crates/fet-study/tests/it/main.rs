//! Tests of the ablation harness, in one program.

mod ablate;
mod browser;
mod contributions;
mod defences;
mod engines;
mod guide;
#[cfg(unix)]
mod program;
mod study;
#[cfg(unix)]
mod sweep;
mod tune;
