//! Tests the laws of the primary's half of every method.

use fet_contract::methods;
use fet_core::method::Method;

use crate::support::devices;

#[test]
fn primary_gradients_match_central_differences() {
    let devices = devices();
    for slot in fet_contract::all::<dyn Method>() {
        methods::gradients_match_central_differences(&slot, &devices[0].device);
    }
}

#[test]
fn primary_gradients_agree_between_devices() {
    let devices = devices();
    for backend in &devices[1..] {
        for slot in fet_contract::all::<dyn Method>() {
            methods::gradients_agree_between_devices(&slot, &devices[0].device, &backend.device);
        }
    }
}

#[test]
fn primary_predicts_each_row_on_its_own() {
    for backend in devices() {
        for slot in fet_contract::all::<dyn Method>() {
            methods::predicts_each_row_on_its_own(&slot, &backend.device);
        }
    }
}
