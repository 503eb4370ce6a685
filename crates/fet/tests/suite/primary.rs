//! Tests the laws of the primary's half of every method.

use fet_contract::methods;
use fet_core::method::Method;

use crate::support::devices;

#[test]
fn primary_gradients_match_central_differences() {
    for backend in devices() {
        for slot in fet_contract::all::<dyn Method>() {
            methods::gradients_match_central_differences(&slot, &backend.device);
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
