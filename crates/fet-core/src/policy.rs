//! A party's policy: what it lets the primary have, whatever the common settings ask for.
//!
//! The policy is the party's own and is sent to nobody. A run that it forbids is refused when the party joins, with the rule
//! and the value; what it forbids during a run is refused at its door.

use serde::{Deserialize, Serialize};

use crate::registry::Violation;

/// What a party lets the primary have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The linkers that it takes part in; all where the list is empty.
    pub linkers: Vec<String>,
    /// The privacy mechanisms that it takes part with, "none" among them if it may be; all where the list is empty.
    pub mechanisms: Vec<String>,
    /// The aggregators that it takes part with; all where the list is empty. A party that wants its part hidden in a sum names
    /// those that are secure sums.
    pub aggregators: Vec<String>,
    /// The largest ε of a run; 0 for no limit.
    pub most_epsilon: f64,
    /// The least noise of a run, in units of the clipping norm; 0 for none.
    pub least_noise: f64,
    /// The least number of parties in a secure sum.
    pub least_summed: usize,
    /// The least number of other parties that it shares masks with, where so many take part.
    pub least_mask_neighbours: usize,
    /// The least number of primary records.
    pub least_rows: usize,
    /// Whether it answers requests for rows besides the schedule, as an attack makes them in a simulation.
    pub probes: bool,
    /// Whether it answers requests for predictions.
    pub predictions: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            linkers: Vec::new(),
            mechanisms: Vec::new(),
            aggregators: Vec::new(),
            most_epsilon: 0.0,
            least_noise: 0.0,
            least_summed: 2,
            least_mask_neighbours: 2,
            least_rows: 1,
            probes: false,
            predictions: true,
        }
    }
}

impl Policy {
    pub(crate) fn check(&self) -> Result<(), Violation> {
        for (field, value) in [("most_epsilon", self.most_epsilon), ("least_noise", self.least_noise)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Violation::new(field, "must be a number of at least 0", value));
            }
        }
        if self.least_summed < 2 {
            let rule = "must be at least 2: the sum over one party is its value";
            return Err(Violation::new("least_summed", rule, self.least_summed));
        }
        Ok(())
    }
}
