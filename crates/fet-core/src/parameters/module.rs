//! Conversion of the parameters and gradients of Burn modules to the flat form and back.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use super::{FlatGradient, Parameters};

impl Parameters {
    /// Reads the parameters of a module.
    pub(crate) fn from_module<M: Module>(module: &M) -> Self {
        let mut reader = Reader { path: Vec::new(), parameters: Self::default() };
        module.visit(&mut reader);
        reader.parameters
    }

    /// Writes the values into a module of the same structure, as trainable leaves.
    pub(crate) fn write<M: Module>(&self, module: M, device: &Device) -> M {
        module.map(&mut Writer { parameters: self, device, next: 0 })
    }
}

/// Extracts a module's gradients from a backward pass.
pub(crate) fn gradients_of<M: Module>(module: &M, gradients: Gradients) -> FlatGradient {
    let mut collector = Collector { gradients, flat: FlatGradient::default() };
    module.visit(&mut collector);
    collector.flat
}

struct Reader {
    path: Vec<String>,
    parameters: Parameters,
}

impl ModuleVisitor for Reader {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().without_autodiff();
        let values = host(value.clone());
        self.parameters.push(&self.path.join("."), &value.dims(), &values);
    }

    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }
}

struct Writer<'a> {
    parameters: &'a Parameters,
    device: &'a Device,
    next: usize,
}

impl ModuleMapper for Writer<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let segment = &self.parameters.segments[self.next];
        self.next += 1;
        let values = self.parameters.values[segment.range.clone()].to_vec();
        let data = TensorData::new(values, segment.shape.clone());
        param.map(|_| Tensor::from_data(data, self.device).require_grad())
    }
}

struct Collector {
    gradients: Gradients,
    flat: FlatGradient,
}

impl ModuleVisitor for Collector {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let gradient = value.grad_remove(&mut self.gradients);
        self.flat.present.push(gradient.is_some());
        match gradient {
            Some(gradient) => self.flat.values.extend(host(gradient)),
            None => self.flat.values.extend(std::iter::repeat_n(0.0, value.dims().iter().product())),
        }
    }
}

/// Copies the values of a tensor to the host.
///
/// # Panics
/// If the tensor does not hold 32-bit floats: every model here does.
pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec::<f32>().expect("models compute in 32-bit floats")
}
