//! Nothing: this crate is its `benches/`, which `cargo xtask bench` runs.
