//! Releases that a secondary makes once. To add one, write a file like `surface.rs` and add one `mod` line.

mod means;
mod record_code;
mod surface;

pub use record_code::{RecordCodeSettings, RecordRelation};
pub use surface::{SurfaceSettings, TableRelation};
