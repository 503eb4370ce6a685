//! Terms of a run's guarantee under which its ε promises less than a reader of the number expects.
//!
//! A party that limits ε (`policy.most_epsilon`, `policy.lifetime_epsilon`) refuses such terms unless its
//! policy names them. A party without a limit joins, and its operator is warned.

use fet_core::policy::Policy;
use fet_core::privacy::{Learning, Neighbouring, PrivacyMechanism, Releases, Spent};
use serde::Serialize;

use super::SecondaryError;

/// A term of the guarantee, and the policy's rule about it.
struct Term {
    /// Setting of the run, followed by its value.
    setting: &'static str,
    value: String,
    /// Name of the policy's list that may contain the value, followed by the list as text.
    field: &'static str,
    list: String,
    is_empty: bool,
    is_named: bool,
    /// Reason why ε promises less with this value, if it does.
    weakness: Option<&'static str>,
}

/// Refuses terms that the policy does not accept. Returns warnings about terms that weaken ε if the policy
/// does not limit ε.
pub(super) fn check(
    policy: &Policy,
    kind: &str,
    privacy: &dyn PrivacyMechanism,
    releases: &Releases,
) -> Result<Vec<String>, SecondaryError> {
    let Spent { guarantee, delta, .. } = privacy.spent(releases, &[]);
    let Some(guarantee) = guarantee else {
        let lists = [("neighbouring", word(&policy.neighbouring)), ("learning", word(&policy.learning))];
        return match lists.into_iter().find(|(_, list)| list != "[]") {
            None => Ok(Vec::new()),
            Some((field, value)) => {
                let rule = format!("must be [] for a run without a guarantee (`privacy.kind` is \"{kind}\")");
                Err(SecondaryError::Policy { field, rule, value })
            }
        };
    };
    let (relation, learning) = (guarantee.neighbouring, guarantee.learning);
    let terms = [
        Term {
            weakness: (relation == Neighbouring::AddRemove)
                .then_some("does not cover the replacement of a record, which can cost up to twice as much"),
            ..Term::new("privacy.neighbouring", "neighbouring", &relation, &policy.neighbouring)
        },
        Term {
            weakness: (learning == Learning::Assumed)
                .then_some("does not count the models' learning from the records"),
            ..Term::new("privacy.learning", "learning", &learning, &policy.learning)
        },
        Term {
            weakness: privacy
                .is_idealised()
                .then_some("assumes noise in real numbers; the released noise is in 32-bit floats"),
            ..Term::new("privacy.kind", "mechanisms", &kind.to_string(), &policy.mechanisms)
        },
    ];
    terms.iter().try_for_each(|term| term.check(policy))?;
    if limits(policy).is_some() {
        return Ok(Vec::new());
    }
    let mut warnings: Vec<String> = terms.iter().filter_map(Term::warning).collect();
    if delta > policy.most_delta {
        warnings.push(format!(
            "`privacy.delta` is {delta:e}, above `policy.most_delta` ({:e}): the run's ε may fail with that probability. Set \
             `policy.most_epsilon` to limit ε at `policy.most_delta`",
            policy.most_delta
        ));
    }
    Ok(warnings)
}

/// Returns the setting that limits ε, and its value.
fn limits(policy: &Policy) -> Option<(&'static str, f64)> {
    let limits = [("most_epsilon", policy.most_epsilon), ("lifetime_epsilon", policy.lifetime_epsilon)];
    limits.into_iter().find(|(_, most)| *most > 0.0)
}

impl Term {
    fn new<T: PartialEq + Serialize>(
        setting: &'static str,
        field: &'static str,
        value: &T,
        list: &Vec<T>,
    ) -> Self {
        let (is_empty, is_named) = (list.is_empty(), list.contains(value));
        Self { setting, value: word(value), field, list: word(list), is_empty, is_named, weakness: None }
    }

    fn check(&self, policy: &Policy) -> Result<(), SecondaryError> {
        let Self { setting, value, field, .. } = self;
        let limited = self.weakness.zip(limits(policy));
        if self.is_named || (self.is_empty && limited.is_none()) {
            return Ok(());
        }
        let mut rule = format!("must name {value}, or `{setting}` must have another value");
        if let Some((weakness, (limit, most))) = limited {
            rule.push_str(&format!(
                ": with it ε {weakness}, so that `policy.{limit}` ({most}) limits too little"
            ));
        }
        Err(SecondaryError::Policy { field, rule, value: self.list.clone() })
    }

    /// Returns the warning about a weakness that the policy does not name.
    fn warning(&self) -> Option<String> {
        let Self { setting, value, field, .. } = self;
        let weakness = self.weakness.filter(|_| !self.is_named)?;
        Some(format!(
            "`{setting}` is {value}: the run's ε {weakness}. Name it in `policy.{field}` to accept it, or set \
             `policy.most_epsilon` to refuse it"
        ))
    }
}

/// Returns a value as a settings file would contain it.
fn word(value: &impl Serialize) -> String {
    toml::Value::try_from(value).map_or_else(|error| error.to_string(), |value| value.to_string())
}
