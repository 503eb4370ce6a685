//! Contract tests of plug-ins: the laws of linkers, encoders, aggregators, methods, label protections, attacks,
//! datasets and sources as functions.
//!
//! The tests of the workspace call each law for every plug-in. A crate of one plug-in calls `check`, which
//! tests all laws of a slot, from its own tests:
//!
//! ```ignore
//! use my_linker as _;
//!
//! #[test]
//! fn same_place_obeys_the_laws_of_linkers() {
//!     fet_contract::linkers::check(&fet_contract::slot("kind = \"same-place\""));
//! }
//! ```
//!
//! A broken law panics with the plug-in's name and settings. The laws of the other slots are still in
//! `crates/fet/tests/suite/contract`, because they need more of the program.

pub mod aggregators;
pub mod attacks;
pub mod datasets;
pub mod encoders;
pub mod labels;
pub mod linkers;
pub mod methods;
pub mod probe;
pub mod sources;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::registry::{Plugin, Slot, SlotKind, plugins};
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use rand::RngExt;

/// Reads the settings of a plug-in from TOML, for example `kind = "nearest"` and `neighbours = 5` on two lines.
///
/// # Panics
/// If the text is not TOML, or if the program would refuse the settings.
pub fn slot<T>(settings: &str) -> Slot<T>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let table = settings.parse().unwrap_or_else(|error| panic!("{settings}: {error}"));
    Slot::from_table(table).unwrap_or_else(|error| panic!("{settings}: {error}"))
}

/// Returns every plug-in of a slot in this program, with its default settings.
///
/// # Panics
/// If there is none, or if a plug-in refuses its own defaults.
pub fn all<T>() -> Vec<Slot<T>>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let found: Vec<_> =
        plugins::<T>().iter().map(|p| Slot::with_defaults(p.kind).expect("sound defaults")).collect();
    assert!(!found.is_empty(), "the slot {} has plug-ins", T::SLOT);
    found
}

/// Returns the random numbers of a test, which depend only on `round`.
pub fn rng(round: u64) -> ChaCha8Rng {
    stream(11, 0, Purpose::Linking, round)
}

/// Returns a tensor of numbers from -0.5 to 0.5 that depends only on its shape and on `round`.
pub fn random<const D: usize>(shape: [usize; D], round: u64, device: &Device) -> Tensor<D> {
    let mut rng = rng(round);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random::<f32>() - 0.5).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
