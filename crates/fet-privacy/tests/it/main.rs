//! Tests of the accountant, the noise and the secure sums, in one program.

mod accountant;
mod code;
mod domain;
mod figures;
mod hostile;
mod noise;
mod secure_sum;
mod surface;
