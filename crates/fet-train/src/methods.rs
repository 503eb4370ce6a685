//! The paper's method. The baselines are in `fet-baselines`.

mod fet;

pub use fet::FetSettings;
