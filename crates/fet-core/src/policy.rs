//! A party's policy: its limits on the primary's requests, which override the common settings.
//!
//! The policy is private to the party and is never sent. The party refuses to join a run that the policy
//! forbids, and names the rule and the value. During a run, the party refuses every request that the policy
//! forbids.

use crate::aggregator::{Aggregator, Role};
use crate::linker::Linker;
use crate::privacy::{Learning, Neighbouring, PrivacyMechanism};
use crate::registry::{Plugin, Slot, SlotKind, Violation, did_you_mean, plugins};
use crate::release::Release;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A party's limits on the primary's requests.
// Each field is a setting that users write, so nesting the fields would change their files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Linkers that the party accepts; an empty list accepts all.
    pub linkers: Vec<String>,
    /// Privacy mechanisms that the party accepts; include "none" to allow runs without a mechanism. An empty
    /// list accepts all; with `most_epsilon` it leaves out mechanisms such as "gaussian", whose ε holds only
    /// for an idealisation.
    pub mechanisms: Vec<String>,
    /// Aggregators that the party accepts; an empty list accepts all. To keep the party's contribution hidden
    /// in a sum, name only aggregators that use secure aggregation.
    pub aggregators: Vec<String>,
    /// Kinds of `[release]` that the party accepts. An empty list accepts all, unless the policy sets `mechanisms`,
    /// `aggregators`, `learning`, `least_noise` or `least_summed`, which are about answers in a training: then it accepts none.
    pub releases: Vec<String>,
    /// Maximum ε of a run, computed at `most_delta`; 0 for no limit.
    #[schemars(range(min = 0))]
    pub most_epsilon: f64,
    /// The δ at which `most_epsilon` limits ε, for any `privacy.delta`. Choose it well below one divided by
    /// the number of records.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub most_delta: f64,
    /// Values of `privacy.neighbouring` that the party accepts. An empty list accepts all; with
    /// `most_epsilon` it accepts "replace" and "record", which protect a record that is replaced.
    pub neighbouring: Vec<Neighbouring>,
    /// Values of `privacy.learning` that the party accepts. An empty list accepts all; with `most_epsilon` it
    /// leaves out "assumed", whose ε omits what the models learn from the records.
    pub learning: Vec<Learning>,
    /// Minimum noise of a run, in units of the clipping norm; 0 for no limit.
    #[schemars(range(min = 0))]
    pub least_noise: f64,
    /// Maximum ε of all runs together in the party's state folder, computed at `most_delta`; 0 for no limit.
    #[schemars(range(min = 0))]
    pub lifetime_epsilon: f64,
    /// Minimum number of parties in a secure aggregation; the sum over one party would reveal its value.
    #[schemars(range(min = 2))]
    pub least_summed: usize,
    /// True to allow sums without a privacy mechanism over different sets of parties for the same rows, after
    /// party dropout or when a party drops out of the run, and predictions by secure sums. The primary can then
    /// compute this party's contribution. Only a party whose `aggregators` or `least_summed` require secure aggregation refuses
    /// such sums.
    pub differing_sums: bool,
    /// Minimum number of other parties with which the party shares masks, if that number of other parties
    /// takes part.
    pub least_mask_neighbours: usize,
    /// Minimum number of primary records in a run and in each request for predictions.
    pub least_rows: usize,
    /// True to answer requests for rows outside the schedule, such as an attack sends in a simulation. `fet
    /// party` refuses this setting with a privacy mechanism, because ε does not cover the rows that such
    /// requests can select.
    pub probes: bool,
    /// True to answer requests for predictions. The parties of a simulation always answer them.
    pub predictions: bool,
    /// Maximum number of new records that the party links for predictions, over all runs together; 0 for no
    /// limit. The parties of a simulation have no limit.
    pub most_predictions: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            linkers: Vec::new(),
            mechanisms: Vec::new(),
            aggregators: Vec::new(),
            releases: Vec::new(),
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
    /// Returns true if the policy requires secure aggregation, which hides the party's contribution: it names
    /// only aggregators that see sums, or demands at least three parties in a sum.
    pub fn asks_for_sums(&self) -> bool {
        let is_sum = |kind: &String| {
            let aggregator =
                Slot::<dyn Aggregator>::with_defaults(kind).ok().and_then(|slot| slot.build(&()).ok());
            aggregator.is_some_and(|aggregator| matches!(aggregator.role(), Role::Sum(_)))
        };
        self.least_summed > 2 || (!self.aggregators.is_empty() && self.aggregators.iter().all(is_sum))
    }

    /// Refuses a rule that names an unknown plug-in: it would allow nothing, or forbid nothing.
    pub fn check(&self) -> Result<(), Violation> {
        known::<dyn Linker>("linkers", &self.linkers)?;
        let release = self.mechanisms.iter().find(|name| is_plugin::<dyn Release>(name));
        if let Some(release) = release.filter(|name| !is_plugin::<dyn PrivacyMechanism>(name)) {
            let rule = "must name privacy mechanisms; kinds of `[release]` belong to `policy.releases`";
            return Err(Violation::new("policy.mechanisms", rule, format!("{release:?}")));
        }
        known::<dyn PrivacyMechanism>("mechanisms", &self.mechanisms)?;
        known::<dyn Aggregator>("aggregators", &self.aggregators)?;
        known::<dyn Release>("releases", &self.releases)
    }
}

fn is_plugin<T>(name: &str) -> bool
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    plugins::<T>().iter().any(|plugin| plugin.kind == name)
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
            let rule = format!("must name plug-ins that `fet list` shows{hint}");
            Err(Violation::new(format!("policy.{field}"), rule, format!("{unknown:?}")))
        }
        None => Ok(()),
    }
}
