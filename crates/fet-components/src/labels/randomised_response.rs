//! `randomised-response`: replaces each training label once by an answer drawn at random, by plain randomised
//! response or with a prior (Ghazi et al. 2021, LP-1ST). For classes; `laplace` is for numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{randomised_once, refused};
use fet_core::data::Task;
use fet_core::labels::{Exposure, LabelPrivacy, LabelProtection};
use fet_core::objective::Objective;
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::ChaCha8Rng;
use fet_privacy::labels::{EPSILON_RANGE, RandomisedResponse};

/// Settings of `randomised-response` (Ghazi et al. 2021).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RandomisedResponseSettings {
    /// ε, the privacy loss of one training label over the whole run.
    #[schemars(range(min = EPSILON_RANGE.0, max = EPSILON_RANGE.1))]
    pub epsilon: f64,
    /// Probability of each class, from knowledge other than the training labels; empty if all classes are
    /// equally likely (Ghazi et al. 2021, algorithm 2).
    #[schemars(inner(range(min = 0, max = 1)), extend("x-rule" = "empty, or at least two probabilities that add up to 1"))]
    pub prior: Vec<f64>,
}

impl Default for RandomisedResponseSettings {
    fn default() -> Self {
        Self { epsilon: 1.0, prior: Vec::new() }
    }
}

impl RandomisedResponseSettings {
    fn response(&self, classes: usize) -> Result<RandomisedResponse, Violation> {
        if !self.prior.is_empty() && self.prior.iter().filter(|share| **share > 0.0).count() < 2 {
            let rule =
                "must give at least two classes a positive probability: otherwise every answer is the same";
            return Err(Violation::new("prior", rule, format!("{:?}", self.prior)));
        }
        let response = match self.prior.as_slice() {
            [] => RandomisedResponse::uniform(self.epsilon, classes),
            prior => RandomisedResponse::new(self.epsilon, prior),
        };
        response.map_err(refused)
    }
}

impl Recipe<dyn LabelProtection> for RandomisedResponseSettings {
    fn check(&self) -> Result<(), Violation> {
        self.response(2).map(|_| ())
    }

    fn build(&self, (): &()) -> Result<Box<dyn LabelProtection>, Violation> {
        Ok(Box::new(Randomised { settings: self.clone(), response: self.response(2)? }))
    }
}

inventory::submit! {
    Plugin::<dyn LabelProtection>::new::<RandomisedResponseSettings>(
        "randomised-response",
        "for classes: randomised answers replace the training labels once",
    )
}

struct Randomised {
    settings: RandomisedResponseSettings,
    /// Response for the number of classes in the data, once that number is known.
    response: RandomisedResponse,
}

impl LabelProtection for Randomised {
    fn is_identity(&self) -> bool {
        false
    }

    fn truth(&self) -> Option<f64> {
        self.settings.prior.is_empty().then(|| self.response.probability(0, 0))
    }

    fn prepare(&mut self, exposure: &Exposure) -> Result<(), Violation> {
        if exposure.task == Task::Regression {
            let rule =
                "must be \"laplace\" or \"noisy-gradients\" for a regression, whose labels are not classes";
            return Err(Violation::new("kind", rule, "\"randomised-response\""));
        }
        let (found, classes) = (self.settings.prior.len(), exposure.classes);
        if found != 0 && found != classes {
            let rule = format!("must have a probability for each of {classes} classes, or none");
            return Err(Violation::new("prior", rule, format!("{found} probabilities")));
        }
        self.response = self.settings.response(classes)?;
        Ok(())
    }

    fn labels(&self, labels: &mut [f64], _objective: &mut Objective, rng: &mut ChaCha8Rng) {
        labels.iter_mut().for_each(|label| *label = self.response.answer(*label as usize, rng) as f64);
    }

    fn spent(&self, exposure: &Exposure) -> LabelPrivacy {
        let mechanism = match self.settings.prior.is_empty() {
            true => "randomised response over all classes",
            false => "randomised response with a prior that does not depend on the training labels",
        };
        LabelPrivacy {
            epsilon: Some(self.response.epsilon()),
            delta: 0.0,
            mechanism: "randomised-response".into(),
            statement: randomised_once(exposure, mechanism),
        }
    }
}
