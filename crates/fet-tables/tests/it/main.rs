//! Tests of the tables and their preparation, in one program.

mod departures;
#[cfg(feature = "columnar")]
mod mutations;
mod preparing;
mod reading;
#[cfg(feature = "columnar")]
mod typed;
