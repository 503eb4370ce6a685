//! Initial weights, drawn on the host in the order of the layers' construction.

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_distr::{Distribution, Normal};

use fet_core::rng::ChaCha8Rng;
use fet_io::memory;

/// Draws parameters from a host stream and puts them on a device.
#[derive(Debug)]
pub struct Init<'a> {
    rng: ChaCha8Rng,
    device: &'a Device,
}

impl<'a> Init<'a> {
    /// Draws from `rng` and puts parameters on `device`, which must be an autodiff device if the parameters
    /// are trained.
    pub fn new(rng: ChaCha8Rng, device: &'a Device) -> Self {
        Self { rng, device }
    }

    /// Returns the device of the parameters.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Draws uniform values in (-bound, bound).
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], bound: f64) -> Param<Tensor<D>> {
        claim(&shape);
        let draw = |_| ((self.rng.random::<f64>() * 2.0 - 1.0) * bound) as f32;
        let values = (0..shape.iter().product()).map(draw).collect();
        self.parameter(shape, values)
    }

    /// Draws normal values with mean 0.
    pub fn normal<const D: usize>(&mut self, shape: [usize; D], std: f64) -> Param<Tensor<D>> {
        claim(&shape);
        let normal = Normal::new(0.0, std).expect("a standard deviation was checked to be finite");
        let values = (0..shape.iter().product()).map(|_| normal.sample(&mut self.rng) as f32).collect();
        self.parameter(shape, values)
    }

    /// Fills a parameter with one value.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        claim(&shape);
        let values = vec![value; shape.iter().product()];
        self.parameter(shape, values)
    }

    fn parameter<const D: usize>(&self, shape: [usize; D], values: Vec<f32>) -> Param<Tensor<D>> {
        let value = Tensor::from_data(TensorData::new(values, shape), self.device).require_grad();
        Param::initialized(ParamId::new(), value)
    }
}

/// Refuses parameters that do not fit in memory with their gradients and moments ([`fet_io::memory`]).
fn claim(shape: &[usize]) {
    let count = shape.iter().fold(1u128, |count, &length| count.saturating_mul(length as u128));
    memory::claim(count, 4 * size_of::<f32>() as u128);
}
