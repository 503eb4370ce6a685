//! Tests the laws of each slot, with one suite over every plug-in in the program.

mod aggregators;
mod attacks;
mod datasets;
mod encoders;
mod labels;
mod linkers;
mod mechanisms;
mod sources;

use fet_contract::{all, random, rng};
