//! A function that is computed outside tensors, as one operation of the autograd graph with its own way back.
//!
//! Which function it is and how it is differentiated is the caller's: here are only the graph and the backends.

#![expect(
    deprecated,
    reason = "the macro names every backend; ARCHITECTURE.md records the way to their successors"
)]

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, NdArray, TensorMetadata, backend_extension, read_sync,
};
use burn::tensor::{Tensor, TensorData};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

/// The way back through a function of three inputs, on the host.
pub trait HostGradient: Clone + Debug + Send + 'static {
    /// From the gradient of the result to those of the inputs, each as long as its input.
    fn back(self, result: Vec<f32>) -> [Vec<f32>; 3];
}

/// Applies `function` to the values of `inputs`; the result has the given shape.
///
/// The function learns whether there will be a way back, and gives its result's values and that way.
///
/// # Panics
/// If the values do not fill the shape, or the inputs are not on a device of this crate.
pub fn on_host<const D: usize, F, G>(inputs: [Tensor<1>; 3], shape: [usize; D], function: F) -> Tensor<D>
where
    F: FnOnce([Vec<f32>; 3], bool) -> (Vec<f32>, G),
    G: HostGradient,
{
    let [first, second, third] = inputs.map(Tensor::into_dispatch);
    Tensor::from_dispatch(Dispatch::apply(first, second, third, &shape, function))
}

#[backend_extension(Autodiff, Flex, NdArray, LibTorch: cfg(feature = "libtorch"))]
trait Apply: Backend {
    fn apply<F, G>(
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        third: FloatTensor<Self>,
        shape: &[usize],
        function: F,
    ) -> FloatTensor<Self>
    where
        F: FnOnce([Vec<f32>; 3], bool) -> (Vec<f32>, G),
        G: HostGradient,
    {
        let device = first.device();
        let (values, _) = function([first, second, third].map(read::<Self>), false);
        Self::float_from_data(TensorData::new(values, shape), &device)
    }
}

impl Apply for Flex {}
impl Apply for NdArray {}
#[cfg(feature = "libtorch")]
impl Apply for burn::backend::LibTorch {}

impl<B: Backend, C: CheckpointStrategy> Apply for Autodiff<B, C> {
    fn apply<F, G>(
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        third: FloatTensor<Self>,
        shape: &[usize],
        function: F,
    ) -> FloatTensor<Self>
    where
        F: FnOnce([Vec<f32>; 3], bool) -> (Vec<f32>, G),
        G: HostGradient,
    {
        let device = first.device();
        let result = |values| B::float_from_data(TensorData::new(values, shape), &device);
        let nodes = [first.node(), second.node(), third.node()];
        let inputs = [first, second, third].map(|input| read::<B>(input.into_primitive()));
        match Backward::<B, 3>::prepare::<C>(Step::<G>(PhantomData), nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => {
                let (values, gradient) = function(inputs, true);
                step.finish(gradient, result(values))
            }
            OpsKind::UnTracked(step) => step.finish(result(function(inputs, false).0)),
        }
    }
}

/// Without a copy if nobody else holds the tensor.
fn read<B: Backend>(tensor: FloatTensor<B>) -> Vec<f32> {
    let data = read_sync(B::float_into_data(tensor)).expect("the host can read a tensor");
    data.try_into_vec().expect("models compute in 32-bit floats")
}

#[derive(Debug)]
struct Step<G>(PhantomData<G>);

impl<B: Backend, G: HostGradient> Backward<B, 3> for Step<G> {
    type State = G;

    fn backward(self, ops: Ops<G, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let result = gradients.consume::<B>(&ops.node);
        let device = result.device();
        for (input, values) in ops.parents.into_iter().zip(ops.state.back(read::<B>(result))) {
            if let Some(input) = input {
                let length = values.len();
                let values = B::float_from_data(TensorData::new(values, [length]), &device);
                gradients.register::<B>(input.id, values);
            }
        }
    }
}
