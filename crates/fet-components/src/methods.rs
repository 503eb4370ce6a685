//! The methods: the paper's, and one of our own beside it. The baselines are in `fet-baselines`.

mod fet;
mod pool;

pub use fet::FetSettings;
pub use pool::PoolSettings;
