//! A surface that a party releases once: noisy counts and sums over a pyramid of cells, and the values that
//! a reader derives from them.
//!
//! [`Pyramid::totals`] adds up a party's records, [`Design::release`] adds the noise, and [`Surface`] reads the
//! release: it makes the levels consistent and moves each cell towards the larger cell around it. Only
//! [`Pyramid::totals`] and [`Design::release`] see records. This module does not choose public inputs.
#![doc = include_str!("surface/statement.md")]

mod design;
mod pyramid;
mod smooth;

pub use crate::integers::DesignError;
pub use design::{Design, Relation, UNIT};
pub use pyramid::{AreaError, MOST_CELLS, MOST_DIMENSIONS, Pyramid};
pub use smooth::{Estimate, Surface};
