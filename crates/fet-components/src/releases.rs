//! Releases that a secondary makes once. To add one, write a file like `surface.rs` and add one `mod` line.

mod surface;

pub use surface::{SurfaceSettings, TableRelation};
