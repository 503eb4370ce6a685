//! Average of the parameters that the method shares among all parties.

use fet_core::aggregator::{Role, SecureSum};
use fet_core::message::{LoadParameters, Reply, Request, Round, ShareParameters};
use fet_core::parameters::Parameters;
use fet_privacy::secure_sum::collect;

use super::core::PrimaryCore;
use super::error::RunError;
use super::sums::{ParameterSum, short};
use crate::federation::Federation;
use crate::secure_aggregation;

/// Averages the parameters whose names begin with `prefix` over all parties and the primary: the positional
/// encodings of the Federated Transformer (paper, 4.2). Optimisers keep their moments.
pub(super) fn average_parameters(core: &mut PrimaryCore, prefix: &str, epoch: usize) -> Result<(), RunError> {
    let own = core.model.learner().parameters().with_prefix(prefix);
    let round = Round::Average { epoch: epoch as u32 };
    let (sum, others) = match core.components.aggregator.role() {
        Role::Sum(role) => {
            let sum = role.form();
            secure_sum_of_parameters(core, sum, round, own.values().len())?
        }
        Role::Combine(_) => sum_of_parameters(&mut core.federation, round, &own)?,
    };
    let average = mean_with(own, sum, others);
    core.model.learner_mut().load(&average)?;
    let request = Request::LoadParameters(LoadParameters { round, parameters: average });
    Ok(core.federation.command_active(&request)?)
}

fn sum_of_parameters(
    federation: &mut Federation,
    round: Round,
    own: &Parameters,
) -> Result<(Vec<f64>, usize), RunError> {
    let active = federation.active();
    let message = ShareParameters { round, active: short(&active), attempt: None };
    let requests = vec![Request::ShareParameters(message); active.len()];
    let mut sum = vec![0.0; own.values().len()];
    for (sent, reply) in federation.exchange_all(&active, requests)? {
        let Reply::Parameters(parameters) = reply else { return Err(sent.unexpected(&reply).into()) };
        let value = format!("{parameters:?}");
        if parameters.segments() != own.segments() {
            let rule = format!("must be {own:?}, like the primary's");
            return Err(sent.wrong("parameters", rule, value).into());
        }
        if !parameters.values().iter().all(|value| value.is_finite()) {
            return Err(sent.wrong("parameters", "must be finite", value).into());
        }
        add(&mut sum, parameters.values());
    }
    Ok((sum, active.len()))
}

fn secure_sum_of_parameters(
    core: &mut PrimaryCore,
    sum: SecureSum,
    round: Round,
    length: usize,
) -> Result<(Vec<f64>, usize), RunError> {
    let active = core.federation.active();
    let (degree, needed) = (sum.degree, core.fewest_in_sum(round));
    let mut parts = ParameterSum {
        federation: &mut core.federation,
        privacy: core.components.privacy.as_ref(),
        agreed: core.agreed.len(),
        round,
        length,
        degree,
    };
    let collected = collect(&active, needed, u64::BITS, &mut parts)?;
    core.note_release(round, &active, &collected.attempt.active);
    core.note_unmasking(round, collected.dropped_out, &collected.wrong);
    let active = collected.attempt.active.len();
    let units = secure_aggregation::parameters(active)?;
    let values = collected.sum.iter().map(|word| units.value(*word as i64));
    Ok((values.collect(), active))
}

fn add(sum: &mut [f64], values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value));
}

/// Returns the mean of `own` parameters and those of `others` parties, given the sum of the latter.
fn mean_with(mut own: Parameters, mut sum: Vec<f64>, others: usize) -> Parameters {
    add(&mut sum, own.values());
    let (_, values) = own.split_mut();
    values.iter_mut().zip(sum).for_each(|(value, sum)| *value = (sum / (others + 1) as f64) as f32);
    own
}
