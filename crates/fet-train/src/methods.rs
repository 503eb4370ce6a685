//! The paper's method. What it is compared with is in `fet-baselines`.

mod fet;

pub use fet::FetSettings;
