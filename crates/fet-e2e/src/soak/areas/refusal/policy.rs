//! Violations of a party's policy: the message names the rule and the value.

use super::change::{everywhere, policy, secure};
use super::{ASKED, Line, PARTY};
use crate::soak::world::World;

pub(super) const LINES: &[Line] = &[
    ("policy: linkers", ASKED, |w| policy(w, "linkers = [\"psi\"]"), &["policy.linkers", "psi", "nearest"]),
    (
        "policy: mechanisms",
        ASKED,
        |w| policy(w, "mechanisms = [\"discrete-gaussian\"]"),
        &["policy.mechanisms", "none"],
    ),
    (
        "policy: aggregators",
        ASKED,
        |w| policy(w, "aggregators = [\"secure-average\"]"),
        &["policy.aggregators", "average"],
    ),
    ("policy: least_rows", ASKED, |w| policy(w, "least_rows = 1000"), &["policy.least_rows", "1000", "240"]),
    ("policy: least_noise without noise", ASKED, |w| policy(w, "least_noise = 1.0"), &["policy.least_noise"]),
    (
        "policy: most_epsilon without noise",
        ASKED,
        |w| policy(w, "most_epsilon = 1.0"),
        &["policy.most_epsilon"],
    ),
    (
        "policy: least_noise",
        ASKED,
        |w| {
            private(w)?;
            policy(w, "least_noise = 5.0")
        },
        &["policy.least_noise", "4", "5"],
    ),
    (
        "policy: most_epsilon",
        ASKED,
        |w| {
            private(w)?;
            policy(w, "most_epsilon = 0.5")
        },
        &["policy.most_epsilon", "0.5"],
    ),
    (
        "policy: neighbouring",
        ASKED,
        |w| {
            private(w)?;
            policy(w, "neighbouring = [\"record\"]")
        },
        &["policy.neighbouring", "\"record\"", "\"replace\""],
    ),
    (
        "policy: most_delta is not a probability",
        PARTY,
        |w| {
            private(w)?;
            policy(w, "most_delta = 2.0")
        },
        &["most_delta", "2"],
    ),
    (
        "policy: least_summed",
        ASKED,
        |w| {
            secure(w)?;
            policy(w, "least_summed = 4")
        },
        &["policy.least_summed", "4", "3"],
    ),
    (
        "policy: most_epsilon is not a number",
        PARTY,
        |w| {
            private(w)?;
            policy(w, "most_epsilon = nan")
        },
        &["most_epsilon"],
    ),
    (
        "policy: least_noise is not a number",
        PARTY,
        |w| {
            private(w)?;
            policy(w, "least_noise = nan")
        },
        &["least_noise"],
    ),
];

fn private(world: &World<'_>) -> anyhow::Result<()> {
    everywhere(world, "method =", "privacy = { kind = \"discrete-gaussian\" }\nmethod =")?;
    everywhere(world, "[data]\n", "[data]\nbounds = [0.0, 16.0]\n")
}
