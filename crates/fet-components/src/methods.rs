//! Methods: the paper's method and `fet-pool`. The baselines are in `fet-baselines`.

mod fet;
mod pool;

pub use fet::FetSettings;
pub use pool::PoolSettings;
