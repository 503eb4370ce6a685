//! Tests of the commands, in one program.

mod cargo;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod libtorch;
