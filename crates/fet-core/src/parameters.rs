//! A model's parameters as one flat host vector with named segments.
//!
//! The optimiser, positional-encoding averaging, checkpoints and golden tests all work on this form,
//! which is the same on every backend. It does not know what the parameters mean.

use std::fmt;
use std::ops::Range;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

/// Where one parameter lies in the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The path of the parameter in its module, with dots.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its place.
    pub range: Range<usize>,
}

/// Named values, one after another. `Debug` shows sizes only.
#[derive(Clone, PartialEq, Default)]
pub struct Parameters {
    segments: Vec<Segment>,
    values: Vec<f32>,
}

impl Parameters {
    /// Every value, in the order of [`Parameters::segments`].
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The segments and every value, to be changed in place.
    pub fn split_mut(&mut self) -> (&[Segment], &mut [f32]) {
        (&self.segments, &mut self.values)
    }

    /// The segments, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The values of the parameter `name`.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        let segment = self.segments.iter().find(|segment| segment.name == name)?;
        Some(&self.values[segment.range.clone()])
    }

    /// The parameters whose names begin with `prefix`.
    #[must_use]
    pub fn with_prefix(&self, prefix: &str) -> Self {
        let mut chosen = Self::default();
        for segment in self.segments.iter().filter(|segment| segment.name.starts_with(prefix)) {
            chosen.push(&segment.name, &segment.shape, &self.values[segment.range.clone()]);
        }
        chosen
    }

    /// The parameters whose names begin with `prefix`, without it.
    #[must_use]
    pub fn part(&self, prefix: &str) -> Self {
        let mut chosen = Self::default();
        for segment in &self.segments {
            if let Some(name) = segment.name.strip_prefix(prefix) {
                chosen.push(name, &segment.shape, &self.values[segment.range.clone()]);
            }
        }
        chosen
    }

    /// Appends a parameter.
    ///
    /// # Panics
    /// If the values do not fill the shape.
    pub fn push(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "`{name}` fills its shape");
        let start = self.values.len();
        self.values.extend_from_slice(values);
        let range = start..self.values.len();
        self.segments.push(Segment { name: name.to_string(), shape: shape.to_vec(), range });
    }

    /// Overwrites the parameters that `other` has; says which of them do not exist here or differ in shape.
    pub fn overwrite(&mut self, other: &Self) -> Result<(), ParameterError> {
        for segment in &other.segments {
            let own = self.segments.iter().find(|own| own.name == segment.name);
            let own = own.ok_or_else(|| ParameterError::Unknown { name: segment.name.clone() })?;
            if own.shape != segment.shape {
                let (expected, found) = (own.shape.clone(), segment.shape.clone());
                return Err(ParameterError::Shape { name: segment.name.clone(), expected, found });
            }
            self.values[own.range.clone()].copy_from_slice(&other.values[segment.range.clone()]);
        }
        Ok(())
    }

    /// Reads the parameters of a module.
    pub(crate) fn of<M: Module>(module: &M) -> Self {
        let mut reader = Reader { path: Vec::new(), parameters: Self::default() };
        module.visit(&mut reader);
        reader.parameters
    }

    /// Writes the values into a module of the same structure, as leaves that are trained.
    pub(crate) fn write<M: Module>(&self, module: M, device: &Device) -> M {
        module.map(&mut Writer { parameters: self, device, next: 0 })
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameters[{} in {} segments]", self.values.len(), self.segments.len())
    }
}

/// Parameters that do not fit a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The model has no such parameter.
    #[error("the model has no parameter `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The parameter has another shape.
    #[error("parameter `{name}` has the shape {expected:?}, not {found:?}")]
    Shape {
        /// The name.
        name: String,
        /// The model's shape.
        expected: Vec<usize>,
        /// The shape that was given.
        found: Vec<usize>,
    },
}

/// The gradients of a module: flat values, and which parameters took part.
#[derive(Clone, Default, PartialEq)]
pub struct FlatGradient {
    /// Values in the order of the parameters; 0 where a parameter took no part.
    pub values: Vec<f32>,
    /// For each segment, whether it took part.
    pub present: Vec<bool>,
}

impl FlatGradient {
    /// Adds the gradients of the same parameters from elsewhere.
    ///
    /// # Panics
    /// If they are not of the same model.
    pub(crate) fn add(&mut self, other: &Self) {
        assert_eq!(self.values.len(), other.values.len(), "gradients of one model");
        self.values.iter_mut().zip(&other.values).for_each(|(sum, value)| *sum += value);
        self.present.iter_mut().zip(&other.present).for_each(|(one, more)| *one |= more);
    }
}

impl fmt::Debug for FlatGradient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlatGradient[{}]", self.values.len())
    }
}

/// Takes a module's gradients off a backward pass.
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

/// The values of a tensor, on the host.
///
/// # Panics
/// If the tensor does not hold 32-bit floats: every model here does.
pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec::<f32>().expect("models compute in 32-bit floats")
}
