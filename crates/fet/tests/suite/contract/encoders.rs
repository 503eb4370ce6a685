//! Tests the laws of every encoder, for every form of computation.

use fet_contract::{all, encoders};
use fet_core::encoder::Encoder;

use crate::support::{devices, flex};

#[test]
fn encoder_gradients_match_central_differences() {
    for backend in devices() {
        let check = |slot| encoders::gradients_match_central_differences(slot, &backend.device);
        all::<dyn Encoder>().iter().for_each(check);
    }
}

#[test]
fn encoders_evaluate_each_record_once_without_dropout() {
    let device = flex().device;
    all::<dyn Encoder>()
        .iter()
        .for_each(|slot| encoders::evaluates_each_record_once_without_dropout(slot, &device));
}
