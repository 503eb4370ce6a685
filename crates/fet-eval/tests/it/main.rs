//! Tests of the metrics, splits, intervals and reports, in one program.

mod coverage;
mod golden;
mod paired;
mod report;
mod shapley;
mod splits;
