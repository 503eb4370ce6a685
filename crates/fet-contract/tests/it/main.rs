//! Tests that sound plug-ins pass the contract tests, and that each law finds a plug-in that breaks it.

mod aggregators;
mod linkers;
mod sources;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the message of a check that panics, or an empty text.
fn panic_of(check: impl FnOnce()) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(check)) else { return String::new() };
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a panic with a message")
}
