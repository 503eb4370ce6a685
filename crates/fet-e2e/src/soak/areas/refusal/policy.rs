//! Violations of a party's policy: the message names the rule and the value.

use super::case::{ASKING_PRIMARY, PARTY, RefusalCase};
use super::change::{everywhere, policy, secure};
use crate::soak::world::SoakWorld;

pub(super) const CASES: &[RefusalCase] = &[
    (
        "policy: linkers",
        ASKING_PRIMARY,
        |w| policy(w, "linkers = [\"psi\"]"),
        &["policy.linkers", "psi", "nearest"],
    ),
    (
        "policy: mechanisms",
        ASKING_PRIMARY,
        |w| policy(w, "mechanisms = [\"discrete-gaussian\"]"),
        &["policy.mechanisms", "none"],
    ),
    (
        "policy: aggregators",
        ASKING_PRIMARY,
        |w| policy(w, "aggregators = [\"secure-average\"]"),
        &["policy.aggregators", "average"],
    ),
    (
        "policy: least_rows",
        ASKING_PRIMARY,
        |w| policy(w, "least_rows = 1000"),
        &["policy.least_rows", "1000", "240"],
    ),
    (
        "policy: least_noise without noise",
        ASKING_PRIMARY,
        |w| policy(w, "least_noise = 1.0"),
        &["policy.least_noise"],
    ),
    (
        "policy: most_epsilon without noise",
        ASKING_PRIMARY,
        |w| policy(w, "most_epsilon = 1.0"),
        &["policy.most_epsilon"],
    ),
    (
        "policy: least_noise",
        ASKING_PRIMARY,
        |w| {
            private(w)?;
            policy(w, "least_noise = 5.0")
        },
        &["policy.least_noise", "4", "5"],
    ),
    (
        "policy: most_epsilon",
        ASKING_PRIMARY,
        |w| {
            private(w)?;
            policy(w, "most_epsilon = 0.5")
        },
        &["policy.most_epsilon", "0.5"],
    ),
    (
        "policy: neighbouring",
        ASKING_PRIMARY,
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
        ASKING_PRIMARY,
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

fn private(world: &SoakWorld<'_>) -> anyhow::Result<()> {
    everywhere(world, "method =", "privacy = { kind = \"discrete-gaussian\" }\nmethod =")?;
    everywhere(world, "[data]\n", "[data]\nbounds = [0.0, 16.0]\n")
}
