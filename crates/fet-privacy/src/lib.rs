//! Privacy accounting, integer noise and secure aggregation: the components behind SplitAvg's privacy
//! guarantees.
//!
//! The modules share no state. [`labels`] randomises labels, [`accountant`] computes the cost of a sequence
//! of releases, and [`noise`] draws the integer noise that the accountant assumes. [`secure_sum`] reveals a
//! sum without its summands. [`audit`] tests the claim from outside. The crate is independent of tensors, of
//! the parties' data and of messages; `fet-components` and `fet-federation`
//! connect it to these.
#![doc = include_str!("statement.md")]

pub mod accountant;
pub mod audit;
pub mod code;
pub mod identity;
pub mod integers;
pub mod labels;
pub mod noise;
pub mod secure_sum;
pub mod surface;

/// The example of the README, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
