//! `fet audit`: what ε an experiment's releases betray, held against the ε that it claims.
//!
//! Canaries are put into a secondary's table, in or out at random, and the experiment is trained on it, by its own parties,
//! linker, scaling, encoder, mechanism, sums and trainer. An attacker that knows everything but the canaries sees what the primary
//! receives in all rounds, and guesses which are in by the likelihood ratio. From how often it is right follow lower bounds on ε,
//! which all hold at once at level α: of many runs with one canary, and of one run with many. A bound above the claim refutes it
//! at that level; so does, without chance, a canary that moves the releases farther than is accounted for. What is below the
//! claim proves nothing.

mod canaries;
mod game;
mod replay;
mod table;
mod tape;

use fet_core::data::{PartyTable, VerticalData};
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

use crate::experiment_file::data_folders;
use crate::run::machine;
use fet_io::input::input;
use game::Game;

pub use table::table;

/// How an experiment is audited.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Settings {
    /// The canaries of the one run that has many; half of them are guessed.
    #[arg(long, default_value_t = 40)]
    pub canaries: usize,
    /// Runs with one canary, in half of which it is in.
    #[arg(long, default_value_t = 200)]
    pub runs: usize,
    /// The level: the probability at most with which any bound of the audit, or of a table, exceeds the truth.
    #[arg(long, default_value_t = 0.05)]
    pub alpha: f64,
}

/// The bounds of an audit, which share its level.
const BOUNDS: f64 = 3.0;
/// By how much a canary may seem to move more than is accounted for: copies of parties compute in 32 bits.
const ROUNDING: f64 = 1e-3;

/// What an audit found.
#[derive(Debug, Clone, Serialize)]
pub struct Audit {
    /// The mechanism.
    pub mechanism: String,
    /// Which data sets the canaries make; nothing where the mechanism claims nothing.
    pub neighbouring: Option<Neighbouring>,
    /// What the guarantee makes of models that learn.
    pub learning: Option<Learning>,
    /// δ.
    pub delta: f64,
    /// The claimed ε; nothing where there is none.
    pub epsilon: Option<f64>,
    /// The level of all bounds together.
    pub alpha: f64,
    /// How many runs had one canary.
    pub runs: usize,
    /// How many canaries the one run had.
    pub canaries: usize,
    /// The least ε by the exact bounds on the frequencies over many runs.
    pub many_runs: f64,
    /// The least ε by the same frequencies, if the claim is one of Gaussian differential privacy, as it is without sampling.
    pub many_runs_gaussian: Option<f64>,
    /// The least ε by the guesses of one run.
    pub one_run: f64,
    /// What was guessed in that run, and how much of it was right.
    pub guesses: usize,
    /// How many of the guesses were right.
    pub right: usize,
    /// How far the canary of the runs with one moves the releases at most, in deviations of their noise: the μ that the
    /// attacker meets with.
    pub moved: f64,
    /// How far the account lets one record move them, in the same unit; nothing where there is no claim. Of a run whose
    /// releases have different numbers of parties it is somewhat more than is accounted for.
    pub accounted: Option<f64>,
    /// Whether a bound exceeds the claim, or the canary moves more than is accounted for.
    pub refuted: bool,
    /// By what.
    pub why: Vec<String>,
}

/// What is done to a party's table before the party has it: nothing, but for an audit of an owner that does something wrong.
pub type Owner<'a> = &'a dyn Fn(PartyTable) -> PartyTable;

/// Audits an experiment on its own data.
pub fn audit(experiment: &Experiment, settings: &Settings) -> anyhow::Result<Audit> {
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let data = fet_federation::data::read(experiment, &data_folders(experiment)).map_err(input)?;
    let data = fet_federation::data::in_numbers(data).map_err(input)?;
    audit_on(experiment, &data, settings, &machine(&backend), &|table| table)
}

/// The same on tables that are already loaded, each of which its `owner` prepares.
pub fn audit_on(
    experiment: &Experiment,
    data: &VerticalData,
    settings: &Settings,
    machine: &Machine,
    owner: Owner<'_>,
) -> anyhow::Result<Audit> {
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
    let game = |canaries| Game::new(experiment, data, canaries, machine, owner);
    let (single, many) = (game(1)?, game(canaries)?);
    let found = many_runs(&single, runs)?;
    Ok(judge(experiment, settings, &found, one_run(&many, experiment.seed)?))
}

/// The statistics of runs with and without the canary, and what the last run spent.
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
    // Half of the canaries are guessed, a number that is fixed in advance.
    Ok(Guesses::of_extremes(&scores, &inside, inside.len() / 4))
}

fn judge(experiment: &Experiment, settings: &Settings, found: &Runs, guesses: Guesses) -> Audit {
    let &Settings { canaries, runs, alpha } = settings;
    let Runs { with, without, moved, spent } = found;
    let each = alpha / BOUNDS;
    let (guarantee, delta) = (spent.guarantee.as_ref(), spent.delta);
    // The first fourth of the runs chooses where the rest is cut.
    let (a, b) = (with.len() / 4, without.len() / 4);
    let threshold = chosen_threshold(&with[..a], &without[..b], delta, each);
    let many_runs = epsilon_lower_bound(&with[a..], &without[b..], threshold, delta, each);
    // Likelihood ratios are cut in the middle, at 0, whatever they are.
    let gaussian = guarantee
        .filter(|guarantee| !guarantee.amplification)
        .map(|_| gaussian::epsilon(mu_lower_bound(with, without, 0.0, each), delta));
    let one_run = guesses.epsilon_lower_bound(delta, each);
    let accounted = guarantee.map(|one| (one.releases as f64).sqrt() / one.noise_multiplier);
    let mut why = Vec::new();
    if let Some(claimed) = spent.epsilon {
        let bounds =
            [("many runs", Some(many_runs)), ("many runs, Gaussian", gaussian), ("one run", Some(one_run))];
        for (name, bound) in bounds {
            if let Some(bound) = bound.filter(|bound| !within(*bound, claimed)) {
                why.push(format!(
                    "{name}: ε is {bound:.4} at least, at level {alpha}; {claimed:.4} is claimed"
                ));
            }
        }
    }
    if let Some(accounted) = accounted.filter(|accounted| !within(*moved, accounted * (1.0 + ROUNDING))) {
        why.push(format!("a canary moves the releases by {moved:.4}; {accounted:.4} is accounted for"));
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
        many_runs,
        many_runs_gaussian: gaussian,
        one_run,
        guesses: guesses.made,
        right: guesses.right,
        moved: *moved,
        accounted,
        refuted: !why.is_empty(),
        why,
    }
}

/// Whether a figure keeps to a limit; what is no number does not.
fn within(found: f64, limit: f64) -> bool {
    found <= limit
}
