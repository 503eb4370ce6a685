//! Short forms of the suites, and the golden figures.

#[cfg(unix)]
mod fuzz;
mod golden;
#[cfg(unix)]
mod suites;
