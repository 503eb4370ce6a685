//! Privacy accounting, integer noise and secure sums: what SplitAvg needs to keep what it promises.
//!
//! Rooms that share no state: [`labels`] randomises labels, [`accountant`] says what a run of releases has cost, [`noise`] draws the
//! integer noise that the figure assumes, and [`secure_sum`] lets a sum be known and no summand. [`audit`] tests
//! the claim from outside. Nothing here knows tensors, parties' data or messages; `fet-federation` puts it to use.
//!
#![doc = include_str!("statement.md")]

pub mod accountant;
pub mod audit;
pub mod identity;
pub mod labels;
pub mod noise;
pub mod secure_sum;
