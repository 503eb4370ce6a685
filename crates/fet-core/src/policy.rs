//! A party's policy: what it lets the primary have, whatever the common settings ask for.
//!
//! The policy is the party's own and is sent to nobody. A run that it forbids is refused when the party joins, with the rule
//! and the value; what it forbids during a run is refused at its door.

use crate::aggregator::{Aggregator, Role};
use crate::linker::Linker;
use crate::privacy::{Learning, Neighbouring, PrivacyMechanism};
use crate::registry::{Plugin, Slot, SlotKind, Violation, did_you_mean, plugins};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a party lets the primary have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The linkers that it takes part in; all where the list is empty.
    pub linkers: Vec<String>,
    /// The privacy mechanisms that it takes part with, "none" among them if it may be. An empty list accepts all; with
    /// `most_epsilon` it leaves out those whose ε is that of an idealisation, such as "gaussian".
    pub mechanisms: Vec<String>,
    /// The aggregators that it takes part with; all where the list is empty. A party that wants its part hidden in a sum names
    /// those that are secure sums.
    pub aggregators: Vec<String>,
    /// The largest ε of a run, computed at `most_delta`; 0 for no limit.
    #[schemars(range(min = 0))]
    pub most_epsilon: f64,
    /// The δ at which `most_epsilon` limits ε, whatever `privacy.delta` is: well below one in the number of records.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub most_delta: f64,
    /// The values of `privacy.neighbouring` that it takes part with. An empty list accepts all; with `most_epsilon` it
    /// accepts "replace" and "record", which protect a record that is replaced.
    pub neighbouring: Vec<Neighbouring>,
    /// The values of `privacy.learning` that it takes part with. An empty list accepts all; with `most_epsilon` it leaves
    /// out "assumed", whose ε omits what the models learn from the records.
    pub learning: Vec<Learning>,
    /// The least noise of a run, in units of the clipping norm; 0 for none.
    #[schemars(range(min = 0))]
    pub least_noise: f64,
    /// The largest ε of all runs together that the party's state folder has seen, computed at `most_delta`; 0 for no limit.
    #[schemars(range(min = 0))]
    pub lifetime_epsilon: f64,
    /// The least number of parties in a secure sum; the sum over one party would be its value.
    #[schemars(range(min = 2))]
    pub least_summed: usize,
    /// Whether sums without a privacy mechanism may be over different parties for the same rows, by party dropout or because a party
    /// vanished: the primary can then compute this party's part. Only a party whose `aggregators` or `least_summed` ask for secure
    /// sums refuses them.
    pub differing_sums: bool,
    /// The least number of other parties that it shares masks with, where so many take part.
    pub least_mask_neighbours: usize,
    /// The least number of primary records, of a run and of each request for predictions.
    pub least_rows: usize,
    /// Whether it answers requests for rows outside the schedule, as an attack makes them in a simulation. `fet party` refuses it with
    /// a privacy mechanism, because ε does not count what such requests can select.
    pub probes: bool,
    /// Whether it answers requests for predictions. The parties of a simulation always do.
    pub predictions: bool,
    /// The largest number of new records that it links for predictions in all, over all runs; 0 for no limit. The parties of a
    /// simulation have none.
    pub most_predictions: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            linkers: Vec::new(),
            mechanisms: Vec::new(),
            aggregators: Vec::new(),
            most_epsilon: 0.0,
            most_delta: 1e-5,
            neighbouring: Vec::new(),
            learning: Vec::new(),
            least_noise: 0.0,
            lifetime_epsilon: 0.0,
            least_summed: 2,
            differing_sums: false,
            least_mask_neighbours: 2,
            least_rows: 1,
            probes: false,
            predictions: false,
            most_predictions: 100_000,
        }
    }
}

impl Policy {
    /// Whether it asks for secure sums, so that its part stays hidden: it names aggregators, all of which see sums alone, or wants
    /// more parties in a sum than make one.
    pub fn asks_for_sums(&self) -> bool {
        let is_sum = |kind: &String| {
            let aggregator = Slot::<dyn Aggregator>::of(kind).ok().and_then(|slot| slot.build(&()).ok());
            aggregator.is_some_and(|aggregator| matches!(aggregator.role(), Role::Sum(_)))
        };
        self.least_summed > 2 || (!self.aggregators.is_empty() && self.aggregators.iter().all(is_sum))
    }

    /// Refuses a rule that names what there is not: it would allow nothing, or forbid nothing.
    pub fn check(&self) -> Result<(), Violation> {
        known::<dyn Linker>("linkers", &self.linkers)?;
        known::<dyn PrivacyMechanism>("mechanisms", &self.mechanisms)?;
        known::<dyn Aggregator>("aggregators", &self.aggregators)
    }
}

fn known<T>(field: &str, names: &[String]) -> Result<(), Violation>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let there: Vec<&str> = plugins::<T>().iter().map(|plugin| plugin.kind).collect();
    match names.iter().find(|name| !there.contains(&name.as_str())) {
        Some(unknown) => {
            let hint = did_you_mean(unknown, there.iter().copied());
            let rule = format!("must name what `fet list` shows{hint}");
            Err(Violation::new(format!("policy.{field}"), rule, format!("{unknown:?}")))
        }
        None => Ok(()),
    }
}
