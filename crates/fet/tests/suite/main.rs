//! The program's tests, one binary: contract suites of the slots, golden figures, equivalence of devices,
//! and the command itself.

mod account;
mod attacks;
mod audit;
mod boundary;
mod command;
mod contract;
mod coverage;
mod equivalence;
mod errors;
mod golden;
mod guard;
mod guides;
mod hostile;
mod labels;
mod learning;
mod link;
mod neighbouring;
mod own_data;
mod plugins;
mod predict;
mod primary;
mod privacy;
mod probe;
mod provenance;
mod randomness;
mod repeat;
mod replies;
mod restart;
mod splits;
mod support;
mod transformations;
