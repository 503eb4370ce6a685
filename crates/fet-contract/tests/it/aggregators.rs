//! A mean of all parts, sound and with a planted fault.

use burn::tensor::{Tensor, TensorData};
use fet_contract::{aggregators, slot};
use fet_core::aggregator::{Aggregation, Aggregator, Combine, Gradients, Role};
use fet_core::parameters::host;
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::panic_of;

/// Settings of `plain-mean`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct MeanSettings {
    /// Planted fault; empty for none.
    fault: String,
}

impl Recipe<dyn Aggregator> for MeanSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        Ok(Box::new(Mean { fault: self.fault.clone() }))
    }
}

inventory::submit! { Plugin::<dyn Aggregator>::new::<MeanSettings>("plain-mean", "the mean of all parts") }

struct Mean {
    fault: String,
}

impl Aggregator for Mean {
    fn width(&self, _parties: usize, hidden: usize) -> usize {
        if self.fault == "wide" { 2 * hidden } else { hidden }
    }

    fn role(&self) -> Role<'_> {
        Role::Combine(self)
    }

    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
        let parts = if self.fault == "unscaled" { 1.0 } else { round.active.len() as f64 };
        let gradient = gradient / parts;
        if self.fault == "orthogonal" {
            let device = gradient.device();
            // The error is orthogonal to the representations of the tests, so that their inner product does not show it.
            let values = host(aggregators::round(&[1, 2, 3], 3, &device).0[0].clone());
            let error: Vec<f32> =
                [values[1], -values[0]].into_iter().chain(vec![0.0; values.len() - 2]).collect();
            let error = Tensor::from_data(TensorData::new(error, gradient.dims()), &device);
            return Gradients::Each(vec![gradient.clone() + error, gradient.clone(), gradient]);
        }
        Gradients::Same(gradient)
    }
}

impl Combine for Mean {
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3> {
        let count = round.active.len() as f64;
        let weighted = parts.into_iter().enumerate().map(|(place, part)| match self.fault.as_str() {
            "ordered" => part * place as f64,
            "squared" => part.clone() * part,
            "shifted" => part + 1.0,
            _ => part,
        });
        weighted.reduce(|a, b| a + b).expect("a party is active") / count
    }
}

#[test]
fn accepts_a_sound_aggregator_and_names_the_broken_law() {
    let device = fet_backends::open("flex").expect("always compiled in").device;
    let check = |fault: &str| {
        panic_of(|| aggregators::check(&slot(&format!("kind = 'plain-mean'\nfault = '{fault}'")), &device))
    };
    assert_eq!(check(""), "");
    for (fault, law) in [
        ("wide", "the shape of the memory"),
        ("ordered", "the order of parties"),
        ("squared", "not linear"),
        ("shifted", "not linear"),
        ("unscaled", "not the adjoint"),
        ("orthogonal", "the memory's derivative"),
    ] {
        let message = check(fault);
        assert!(message.contains(law) && message.contains("plain-mean"), "{fault}: {message}");
    }
}
