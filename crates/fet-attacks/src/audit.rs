//! The canary audit (`fet audit`): compares lower bounds on the ε of an experiment's releases with the ε that the experiment
//! claims.
//!
//! The audit puts canaries into a secondary's table, in or out at random. It then trains the experiment on
//! this table with its own parties, linker, scaling, encoder, mechanism, aggregator and trainer. The attacker
//! knows everything except the canaries and sees the messages that the primary receives in all rounds. It
//! guesses by the likelihood ratio which canaries are in.
//!
//! The share of right guesses gives lower bounds on ε, from many runs with one canary and from one run with
//! many canaries. All bounds hold simultaneously at level α. A bound above the claim refutes the claim at
//! that level. A canary that moves the releases farther than accounted for refutes the claim with certainty.
//! A bound below the claim proves nothing.

mod canaries;
mod game;
mod releases;
mod replay;
mod table;
mod tape;

use fet_core::data::VerticalData;
use fet_core::experiment::Experiment;
use fet_core::privacy::{Neighbouring, Spent};
use fet_core::rng::{Purpose, stream};
use fet_eval::records::Learning;
use fet_federation::trainer::Machine;
use fet_privacy::accountant::gaussian;
use fet_privacy::audit::one_run::Guesses;
use fet_privacy::audit::{chosen_threshold, epsilon_lower_bound, mu_lower_bound};
use rand::RngExt;
use serde::Serialize;

use fet_io::input::input;
use game::Game;

pub use game::Owner;
pub use releases::{MadeReleases, audit_releases};

pub use table::table;

/// Settings of an audit.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Settings {
    /// Number of canaries in the run with many canaries; the attacker guesses about half of them.
    #[arg(long, default_value_t = 40)]
    pub canaries: usize,
    /// Number of runs with one canary; half of these runs contain the canary.
    #[arg(long, default_value_t = 200)]
    pub runs: usize,
    /// Level α: maximum probability that any bound of the audit (or of the table) exceeds the true ε.
    #[arg(long, default_value_t = 0.05)]
    pub alpha: f64,
}

/// Number of bounds that share the level of an audit.
const BOUNDS: f64 = 3.0;
/// Relative tolerance for the movement of a canary, because copies of parties compute in 32 bits.
const ROUNDING: f64 = 1e-3;

/// Result of an audit. `fet audit` prints the fields as JSON, so nesting them would change its output.
#[derive(Debug, Clone, Serialize)]
pub struct Audit {
    /// Name of the mechanism.
    pub mechanism: String,
    /// Neighbouring relation of the data sets that the canaries form; `None` if the mechanism makes no claim.
    pub neighbouring: Option<Neighbouring>,
    /// Treatment of learning models in the guarantee.
    pub learning: Option<Learning>,
    /// δ.
    pub delta: f64,
    /// Claimed ε; `None` without a claim.
    pub epsilon: Option<f64>,
    /// Level of all bounds together.
    pub alpha: f64,
    /// Number of runs with one canary.
    pub runs: usize,
    /// Number of canaries in the run with many canaries.
    pub canaries: usize,
    /// Lower bound on ε from the frequencies over many runs, by exact confidence bounds.
    pub many_runs: f64,
    /// Lower bound on ε from the same frequencies under Gaussian differential privacy; `None` unless the
    /// mechanism claims that (as it does without sampling).
    pub many_runs_gaussian: Option<f64>,
    /// Lower bound on ε from the guesses in one run.
    pub one_run: f64,
    /// Number of guesses in that run.
    pub guesses: usize,
    /// Number of right guesses.
    pub right: usize,
    /// Largest distance that the canary moves the releases over the runs with one canary, in standard
    /// deviations of the noise: the μ that the attacker observes.
    pub moved: f64,
    /// Distance that the account lets one record move the releases, in the same unit; `None` without a
    /// claim. If releases have different numbers of parties, this value is slightly above the accounted
    /// distance.
    pub accounted: Option<f64>,
    /// True if a bound exceeds the claim, or the canary moves the releases more than accounted for.
    pub refuted: bool,
    /// Reasons for the refutation.
    pub why: Vec<String>,
}

/// Audits an experiment on loaded tables, after `owner` has changed each of them.
pub fn audit_on(
    experiment: &Experiment,
    data: &VerticalData,
    settings: &Settings,
    machine: &Machine,
    owner: Owner<'_>,
) -> anyhow::Result<Audit> {
    check(settings)?;
    let &Settings { canaries, runs, .. } = settings;
    let game = |canaries| Game::new(experiment, data, canaries, machine, owner);
    let (single, many) = (game(1)?, game(canaries)?);
    let found = many_runs(&single, runs)?;
    Ok(judge(experiment, settings, &found, one_run(&many, experiment.seed)?))
}

/// Refuses settings that give no bounds.
fn check(settings: &Settings) -> anyhow::Result<()> {
    let &Settings { canaries, runs, alpha } = settings;
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(input(format!("`--alpha` must be above 0 and below 1; it is {alpha}")));
    }
    if runs < 8 {
        return Err(input(format!("`--runs` must be at least 8; it is {runs}")));
    }
    if canaries < 4 {
        return Err(input(format!("`--canaries` must be at least 4; it is {canaries}")));
    }
    Ok(())
}

/// Statistics of the runs with and without the canary, and the privacy cost of the last run.
struct Runs {
    with: Vec<f64>,
    without: Vec<f64>,
    moved: f64,
    spent: Spent,
}

fn many_runs(game: &Game<'_>, runs: usize) -> anyhow::Result<Runs> {
    let (mut with, mut without, mut moved) = (Vec::new(), Vec::new(), 0.0);
    let mut last = None;
    for run in 0..runs as u64 {
        let inside = run % 2 == 1;
        let played = game.play(&[inside], run)?;
        let score = game.scores(&played)?[0];
        if inside {
            with.push(score.ratio)
        } else {
            without.push(score.ratio)
        }
        moved = score.moved.max(moved);
        last = Some(played.spent);
    }
    let spent = last.ok_or_else(|| input("no run"))?;
    Ok(Runs { with, without, moved, spent })
}

fn one_run(game: &Game<'_>, seed: u64) -> anyhow::Result<Guesses> {
    let mut coins = stream(seed, 0, Purpose::Sampling, 1);
    let inside: Vec<bool> = (0..game.canaries()).map(|_| coins.random()).collect();
    let played = game.play(&inside, u64::MAX >> 1)?;
    let scores: Vec<f64> = game.scores(&played)?.iter().map(|score| score.ratio).collect();
    // The attacker guesses about half of the canaries; this number is fixed in advance.
    Ok(Guesses::of_extremes(&scores, &inside, inside.len() / 4))
}

fn judge(experiment: &Experiment, settings: &Settings, found: &Runs, guesses: Guesses) -> Audit {
    let &Settings { canaries, runs, alpha } = settings;
    let Runs { with, without, moved, spent } = found;
    let (guarantee, delta) = (spent.guarantee.as_ref(), spent.delta);
    let is_gaussian = guarantee.is_some_and(|guarantee| !guarantee.amplification);
    let bounds = Bounds::new([with, without], guesses, [delta, alpha], is_gaussian);
    let accounted = guarantee.map(|one| (one.releases as f64).sqrt() / one.noise_multiplier);
    let mut why = bounds.above(spent.epsilon, alpha);
    if let Some(accounted) = accounted.filter(|accounted| !within(*moved, accounted * (1.0 + ROUNDING))) {
        why.push(format!("a canary moves the releases by {moved:.4}; the account covers {accounted:.4}"));
    }
    Audit {
        mechanism: experiment.privacy.kind().to_string(),
        neighbouring: guarantee.map(|guarantee| guarantee.neighbouring),
        learning: guarantee.map(|guarantee| guarantee.learning),
        delta,
        epsilon: spent.epsilon,
        alpha,
        runs,
        canaries,
        many_runs: bounds.many_runs,
        many_runs_gaussian: bounds.gaussian,
        one_run: bounds.one_run,
        guesses: guesses.made,
        right: guesses.right,
        moved: *moved,
        accounted,
        refuted: !why.is_empty(),
        why,
    }
}

/// Lower bounds on ε, which hold together at the level of the audit.
struct Bounds {
    many_runs: f64,
    /// Bound from many runs under Gaussian differential privacy; `None` if the release does not claim that.
    gaussian: Option<f64>,
    one_run: f64,
}

impl Bounds {
    /// Computes the bounds from the scores of the runs with and without the canary, and from the guesses in one run.
    fn new(
        [with, without]: [&[f64]; 2],
        guesses: Guesses,
        [delta, alpha]: [f64; 2],
        is_gaussian: bool,
    ) -> Self {
        let each = alpha / BOUNDS;
        // The first quarter of the runs chooses the threshold for the other runs.
        let (a, b) = (with.len() / 4, without.len() / 4);
        let threshold = chosen_threshold(&with[..a], &without[..b], delta, each);
        // The threshold for likelihood ratios is always 0, the middle.
        let of_gaussian = || gaussian::epsilon(mu_lower_bound(with, without, 0.0, each), delta);
        Self {
            many_runs: epsilon_lower_bound(&with[a..], &without[b..], threshold, delta, each),
            gaussian: is_gaussian.then(of_gaussian),
            one_run: guesses.epsilon_lower_bound(delta, each),
        }
    }

    /// Returns a sentence for each bound above the claim.
    fn above(&self, claimed: Option<f64>, alpha: f64) -> Vec<String> {
        let Some(claimed) = claimed else { return Vec::new() };
        let bounds = [
            ("many runs", Some(self.many_runs)),
            ("many runs, Gaussian", self.gaussian),
            ("one run", Some(self.one_run)),
        ];
        let above = bounds.into_iter().filter_map(|(name, bound)| Some((name, bound?)));
        above
            .filter(|(_, bound)| !within(*bound, claimed))
            .map(|(name, bound)| {
                format!("{name}: ε is at least {bound:.4} at level {alpha}; the claim is {claimed:.4}")
            })
            .collect()
    }
}

/// Returns true if a figure is within a limit; NaN is not.
fn within(found: f64, limit: f64) -> bool {
    found <= limit
}
