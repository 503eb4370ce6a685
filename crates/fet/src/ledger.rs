//! `fet ledger`: shows a party's lifetime account, with the privacy loss of each run and of all runs
//! together.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use fet_core::policy::Policy;
use fet_core::privacy::{Learning, Loss, NoisyReleases};
use fet_federation::lifetime::{LARGEST_AGE, Lifetime, RunLoss};
use fet_privacy::accountant::{Event, Total, gaussian};
use serde_json::{Value, json};

use crate::lock;
use crate::parties::setup::{PartyFile, own_folder};
use fet_io::input::input;

/// Commands of `fet ledger`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum LedgerCommand {
    /// Show the ε of each of a party's runs, the total ε, the limit and the remaining ε.
    Show(LedgerShowArguments),
    /// Add releases that the account lacks, from an earlier version or lost by an old copy of the state.
    Add(LedgerAddArguments),
}

/// Arguments of `fet ledger show`.
#[derive(Debug, Clone, clap::Args)]
pub struct LedgerShowArguments {
    /// The party's own file, or its `state` folder.
    pub place: PathBuf,
    /// δ of the total [default: `policy.most_delta` of the party's file, else 1e-5].
    #[arg(long)]
    pub delta: Option<f64>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fet ledger add`.
#[derive(Debug, Clone, clap::Args)]
pub struct LedgerAddArguments {
    /// The party's own file, or its `state` folder.
    pub place: PathBuf,
    /// Standard deviation of the noise, in units of the sensitivity: `noise_multiplier` in the report of a
    /// run. Use 0 for a run without noise or a rehearsal; the total ε is then unbounded. Without this option no release
    /// is added: the account has all of them, as the newest copy does that a refusal made too young.
    #[arg(long, requires = "releases", required_unless_present = "age")]
    pub noise: Option<f64>,
    /// Number of releases: `releases` in the report of a run, and 1 for a release that is made once (`[release]`).
    #[arg(long, requires = "noise")]
    pub releases: Option<u64>,
    /// ε of the symbols of a lost `record-code` release, in addition to its noise: `code.epsilon` of the party in the
    /// report, or twice that if the release protects columns alone ("features").
    #[arg(long, default_value_t = 0.0, requires = "noise")]
    pub symbols: f64,
    /// Probability that a release uses a record: `sample_rate`, if the report has `amplification`.
    #[arg(long, default_value_t = 1.0)]
    pub rate: f64,
    /// Age of the account that another party's refusal names; afterwards the account is older than this.
    #[arg(long)]
    pub age: Option<u64>,
}

/// Shows or extends a lifetime account, and returns the text to print.
pub fn ledger(command: &LedgerCommand) -> anyhow::Result<String> {
    match command {
        LedgerCommand::Show(arguments) => show(arguments),
        LedgerCommand::Add(arguments) => add(arguments),
    }
}

/// Lifetime account of a party, and its limit.
struct Account {
    lifetime: Lifetime,
    state: PathBuf,
    /// `policy.lifetime_epsilon`, if the party's file sets it.
    limit: Option<f64>,
    delta: f64,
}

impl Account {
    fn open(place: &Path, delta: Option<f64>) -> anyhow::Result<Self> {
        let (state, policy) = if place.is_dir() {
            (place.to_path_buf(), None)
        } else if place.exists() {
            let file = PartyFile::read(place)?;
            (place.parent().unwrap_or(Path::new("")).join(&file.state), Some(file.policy))
        } else {
            return Err(input(format!(
                "{}: there is no such file or folder. Name a party's own file or its `state` folder.",
                place.display()
            )));
        };
        let own = own_folder(&state);
        if !own.is_dir() && policy.is_none() {
            return Err(input(format!(
                "{}: the folder contains no state of a party. Name a party's own file or its `state` folder.",
                place.display()
            )));
        }
        Self::of(state, &policy.unwrap_or_default(), delta)
    }

    fn of(state: PathBuf, policy: &Policy, delta: Option<f64>) -> anyhow::Result<Self> {
        let limit = Some(policy.lifetime_epsilon).filter(|limit| *limit > 0.0);
        let delta = delta.unwrap_or(policy.most_delta);
        if !(delta > 0.0 && delta < 1.0) {
            return Err(input(format!("--delta must be above 0 and below 1; it is {delta}")));
        }
        let lifetime = Lifetime::open(&own_folder(&state)).map_err(input)?;
        Ok(Self { lifetime, state, limit, delta })
    }

    fn epsilon(&self) -> f64 {
        self.lifetime.total().epsilon(self.delta)
    }

    /// Returns the largest ε that a further run without sampling may have within the limit; `None` without a
    /// limit.
    fn remaining(&self) -> Option<f64> {
        let limit = self.limit?;
        let total = self.lifetime.total();
        let fits = |mu: f64| {
            let mut with = total.clone();
            with.add_gaussian([Event { noise: 1.0 / mu, rate: 1.0, steps: 1 }], 0.0);
            with.epsilon(self.delta) <= limit
        };
        let (mut low, mut high) = (0.0, 1e3);
        for _ in 0..30 {
            let middle = f64::midpoint(low, high);
            if fits(middle) { low = middle } else { high = middle }
        }
        Some(if low > 0.0 { gaussian::epsilon(low, self.delta) } else { 0.0 })
    }

    /// Returns an ε that a further release of any form may have within the limit; `None` without a limit.
    fn remaining_of_any(&self) -> Option<f64> {
        Some((self.limit? - self.epsilon()).max(0.0))
    }

    /// Returns the assumptions behind the total, and the reasons for a missing bound.
    fn notes(&self) -> Vec<String> {
        let (runs, mut notes) = (self.lifetime.runs(), Vec::new());
        for run in runs {
            let name = &run.name;
            if let Some(reason) = run.unbounded() {
                notes.push(format!("{name}: the privacy loss is unbounded: {reason}"));
            }
            if run.about.as_ref().is_some_and(|about| about.learning == Some(Learning::Assumed)) {
                notes.push(format!(
                    "{name}: the account does not count information that the models learned from a record (`learning` \
                     \"assumed\")"
                ));
            }
            // A run without a bound has no closing record, because its loss stays.
            if run.open && run.unbounded().is_none() {
                notes.push(format!(
                    "{name}: a session is under way or was interrupted; the account counts its reserved releases"
                ));
            }
            if !run.lost.is_empty() {
                notes.push(format!(
                    "{name}: the ledger of earlier releases is lost; the account counts their reserved releases"
                ));
            }
        }
        let unknown = self.lifetime.unknown_ledgers();
        if !unknown.is_empty() {
            notes.push(format!(
                "NOT COUNTED: the releases of earlier versions in ledger-{}. Add them with `fet ledger add`.",
                unknown.join(", ledger-")
            ));
        }
        let ideal = self.lifetime.total().with_ideal_noise().epsilon(self.delta);
        if self.epsilon().is_infinite() && ideal.is_finite() {
            notes.push(format!(
                "above an ε of about 20, imperfect integer noise removes the bound; with ideal noise ε would be {ideal:.4}"
            ));
        }
        if self.lifetime.total().is_sampled() {
            notes.push(
                "the total relies on sampling; it is valid only if no settings of a run were chosen after seeing the \
                 results of an earlier run"
                    .to_string(),
            );
        }
        notes
    }

    fn protected(&self) -> &'static str {
        match self.lifetime.covers_replacement() {
            true => "one record of this party, added, removed or replaced",
            false => "one record of this party, added or removed",
        }
    }
}

fn show(arguments: &LedgerShowArguments) -> anyhow::Result<String> {
    let account = Account::open(&arguments.place, arguments.delta)?;
    if arguments.json {
        return Ok(format!("{}\n", object(&account)));
    }
    let mut text = String::new();
    let runs: Vec<&RunLoss> = account.lifetime.runs().iter().filter(|run| !run.is_none()).collect();
    for run in &runs {
        let about = run.about.as_ref().map_or_else(
            || "added by the operator".to_string(),
            |about| {
                let words = [
                    about.neighbouring.map(|relation| serialized_name(&relation)),
                    about.learning.map(|learning| serialized_name(&learning)),
                    Some(format!("t = {}", about.colluding)),
                    Some(format!("seed {}", about.seed)),
                ];
                [about.mechanism.clone()]
                    .into_iter()
                    .chain(words.into_iter().flatten())
                    .collect::<Vec<_>>()
                    .join(", ")
            },
        );
        let _ = writeln!(
            text,
            "{:<16}  {}  ε = {:<10}  {} releases; {about}",
            run.name,
            day(run.last),
            format_epsilon(alone(run, account.delta)),
            releases(run),
        );
    }
    let _ = writeln!(
        text,
        "{} runs together: ε = {} at δ = {:e}, for {}",
        runs.len(),
        format_epsilon(account.epsilon()),
        account.delta,
        account.protected()
    );
    let remaining = account.remaining().zip(account.remaining_of_any());
    let _ = match (account.limit, remaining) {
        (Some(limit), Some((remaining, of_any))) => writeln!(
            text,
            "limit (`policy.lifetime_epsilon`): {limit}; a further run may have ε = {remaining:.4} by Gaussian noise, and a release \
             of symbols (`record-code`) ε = {of_any:.4}"
        ),
        _ => writeln!(text, "limit (`policy.lifetime_epsilon`): none"),
    };
    account.notes().iter().for_each(|note| text += &format!("note: {note}\n"));
    Ok(text)
}

fn object(account: &Account) -> Value {
    let number = |epsilon: f64| if epsilon.is_finite() { json!(epsilon) } else { Value::Null };
    let run = |run: &RunLoss| {
        json!({
            "run": run.name,
            "last": run.last,
            "epsilon": number(alone(run, account.delta)),
            "releases": releases(run),
            "open": run.open,
            "about": run.about,
            "loss": run.loss,
            "lost": run.lost,
        })
    };
    json!({
        "epsilon": number(account.epsilon()),
        "delta": account.delta,
        "limit": account.limit,
        "remaining": account.remaining(),
        "remaining_of_symbols": account.remaining_of_any(),
        "protected": account.protected(),
        "age": account.lifetime.age(),
        "runs": account.lifetime.runs().iter().filter(|run| !run.is_none()).map(run).collect::<Vec<_>>(),
        "not_counted": account.lifetime.unknown_ledgers(),
        "notes": account.notes(),
    })
}

fn add(arguments: &LedgerAddArguments) -> anyhow::Result<String> {
    let LedgerAddArguments { rate, symbols, .. } = *arguments;
    let added = arguments.noise.zip(arguments.releases);
    let state = Account::open(&arguments.place, None)?.state;
    let Some(_lock) = lock::take(&state)? else {
        return Err(input(format!(
            "{}: a process is using the state. Stop the party first.",
            state.display()
        )));
    };
    // Read the account again under the lock, because a stopping party may have written to it.
    let mut account = Account::open(&arguments.place, None)?;
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(input(format!("--rate must be above 0 and at most 1; it is {rate}")));
    }
    if !(symbols >= 0.0 && symbols.is_finite()) {
        return Err(input(format!("--symbols must be at least 0; it is {symbols}")));
    }
    let loss = match added {
        None => Loss::NONE,
        Some((_, 0)) => return Err(input("--releases must be at least 1; it is 0")),
        Some((noise, releases)) => {
            if noise != 0.0 {
                let event = Event { noise, rate, steps: releases };
                fet_privacy::accountant::Account::from_events(&[event], account.delta)
                    .map_err(|error| input(format!("--noise, --rate or --releases: {error}")))?;
            }
            let noisy = Loss::of_releases(NoisyReleases { noise, rate, count: releases });
            match symbols > 0.0 {
                true => Loss::Parts { parts: vec![noisy, Loss::Bound { epsilon: symbols, delta: 0.0 }] },
                false => noisy,
            }
        }
    };
    if let Some(age) = arguments.age.filter(|age| *age > LARGEST_AGE) {
        return Err(input(format!(
            "--age must be at most {LARGEST_AGE}, the age that the refusal names; it is {age}"
        )));
    }
    account.lifetime.add(loss, arguments.age).map_err(input)?;
    let age = account.lifetime.age();
    let text = show(&LedgerShowArguments { place: arguments.place.clone(), delta: None, json: false })?;
    Ok(format!("{text}age of the account: {age}\n"))
}

/// Returns a one-line summary of the lifetime account of the party with this `state` folder; `None` if the
/// account is empty.
pub(crate) fn line(place: &Path, state: &Path) -> Option<String> {
    let account = Account::open(if place.is_dir() { state } else { place }, None).ok()?;
    if account.lifetime.age() == 0 {
        return None;
    }
    let limit = account.limit.map_or_else(|| "no limit".to_string(), |limit| format!("limit {limit}"));
    Some(format!(
        "lifetime account: ε = {} at δ = {:e} in {} runs; {limit}",
        format_epsilon(account.epsilon()),
        account.delta,
        account.lifetime.runs().iter().filter(|run| !run.is_none()).count()
    ))
}

/// Lifetime account of a party at one moment.
#[derive(Debug, Clone)]
pub(crate) struct AccountSummary {
    /// ε of all runs together; infinite if it is unbounded.
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    /// `policy.lifetime_epsilon`, if the policy sets it.
    pub(crate) limit: Option<f64>,
    /// Runs that have released something.
    pub(crate) runs: Vec<AccountRun>,
    /// Assumptions behind the total, and the reasons for a missing bound.
    pub(crate) notes: Vec<String>,
}

/// Run in a lifetime account.
#[derive(Debug, Clone)]
pub(crate) struct AccountRun {
    pub(crate) name: String,
    /// Day of the last record.
    pub(crate) day: String,
    /// ε of this run alone; infinite if it is unbounded.
    pub(crate) epsilon: f64,
    pub(crate) releases: u64,
}

/// Returns the lifetime account in a party's `state` folder under the party's policy; `None` if the account is empty.
pub(crate) fn summary(state: &Path, policy: &Policy) -> anyhow::Result<Option<AccountSummary>> {
    let account = Account::of(state.to_path_buf(), policy, None)?;
    if account.lifetime.age() == 0 {
        return Ok(None);
    }
    let run = |run: &RunLoss| AccountRun {
        name: run.name.clone(),
        day: day(run.last),
        epsilon: alone(run, account.delta),
        releases: releases(run),
    };
    Ok(Some(AccountSummary {
        epsilon: account.epsilon(),
        delta: account.delta,
        limit: account.limit,
        runs: account.lifetime.runs().iter().filter(|run| !run.is_none()).map(run).collect(),
        notes: account.notes(),
    }))
}

fn alone(run: &RunLoss, delta: f64) -> f64 {
    let mut total = Total::default();
    run.add_to(&mut total);
    total.epsilon(delta)
}

fn releases(run: &RunLoss) -> u64 {
    fn count(loss: &Loss) -> u64 {
        match loss {
            Loss::Gaussian { releases, .. } => releases.iter().map(|kind| kind.count).sum(),
            // The parts leave together.
            Loss::Parts { parts } => parts.iter().map(count).max().unwrap_or(0),
            Loss::Bound { .. } | Loss::Unbounded { .. } => 0,
        }
    }
    run.lost.iter().chain([&run.loss]).map(count).sum()
}

/// Returns ε as text.
pub(crate) fn format_epsilon(epsilon: f64) -> String {
    if epsilon.is_finite() { format!("{epsilon:.4}") } else { "unbounded".to_string() }
}

fn serialized_name(value: &impl serde::Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_string()
}

fn day(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| "-".repeat(10), |time| time.format("%Y-%m-%d").to_string())
}
