//! `fet party check`: what a run with the present settings would release from a party's table, before anything leaves.

use std::fmt::Write as _;
use std::path::PathBuf;

use fet_core::message::Parts;
use fet_federation::lifetime::Lifetime;
use fet_federation::outlook::{self, AnswerForm, PlannedRun, PrimarySize};
use fet_federation::secondary::MOST_ROWS;
use fet_io::input::input;
use serde::Serialize;

use super::approval::{Approvals, NotApproved};
use super::owner::Subject;
use super::setup::{PartyFiles, PartySetup};
use crate::reporter::{Log, Reporter};

/// Arguments of `fet party check`.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckArguments {
    /// The party's own file (TOML).
    pub file: PathBuf,
    /// Number of primary rows, which decides the number of rounds and ε.
    #[arg(long)]
    pub rows: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Outlook of a party's owner on a run.
#[derive(Debug, Serialize)]
pub(super) struct CheckReport {
    party: String,
    /// Hash that approvals name.
    hash: String,
    experiment: String,
    /// Columns of the party's table that models see.
    columns: Vec<String>,
    primary: MemberView,
    linker: LinkerView,
    /// Answers in the training; `None` if the party takes no part in it.
    answers: Option<AnswerView>,
    /// One-time release; `None` without one.
    release: Option<ReleaseView>,
    privacy: PrivacyView,
    predictions: PredictionView,
    lifetime: LifetimeView,
    approval: ApprovalView,
    /// True if the run hides nothing.
    rehearsal: bool,
}

#[derive(Debug, Serialize)]
struct MemberView {
    name: String,
    key: String,
}

#[derive(Debug, Serialize)]
struct LinkerView {
    kind: String,
    neighbours: usize,
    party_learns: String,
    primary_learns: String,
    eavesdropper_learns: String,
}

#[derive(Debug, Serialize)]
struct AnswerView {
    aggregator: String,
    /// True if the primary receives only the sum over the parties.
    summed: bool,
    positions: usize,
    width: usize,
    evaluation_width: Option<usize>,
    epochs: usize,
    /// True if the party's model learns from gradients of the primary.
    learns: bool,
    similarities: bool,
    averaged_every: Option<usize>,
    /// Number of primary rows that the owner assumes.
    rows: Option<usize>,
    /// Number of answers of the whole run for these rows.
    rounds: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ReleaseView {
    kind: String,
    neighbouring: String,
}

#[derive(Debug, Serialize)]
struct PrivacyView {
    mechanism: String,
    /// True if the mechanism needs the number of rows to state its ε.
    needs_rows: bool,
    /// ε of the run as planned; `None` without a bound.
    epsilon: Option<f64>,
    delta: f64,
}

#[derive(Debug, Serialize)]
struct PredictionView {
    allowed: bool,
    /// Maximum number of records over all runs; `None` for no limit.
    most: Option<u64>,
    /// Number of records so far.
    used: u64,
    /// ε of one batch of predictions by itself, if the number of primary rows is known; `None` without a privacy mechanism.
    epsilon_of_batch: Option<f64>,
}

#[derive(Debug, Serialize)]
struct LifetimeView {
    runs: usize,
    /// ε of all runs so far; `None` without a bound.
    before: Option<f64>,
    /// ε together with this run; `None` without a bound.
    with_run: Option<f64>,
    limit: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ApprovalView {
    required: bool,
    /// The approvals of these settings.
    approvals: Vec<ApprovalLine>,
}

#[derive(Debug, Serialize)]
struct ApprovalLine {
    number: u64,
    time: String,
    state: &'static str,
    limits: String,
    runs: usize,
    predictions: u64,
}

/// Prints the outlook on a run.
pub fn check(arguments: &CheckArguments) -> anyhow::Result<String> {
    if let Some(rows) = arguments.rows.filter(|rows| !(1..=MOST_ROWS).contains(rows)) {
        return Err(input(format!(
            "--rows must be 1 to {MOST_ROWS}, the most that a run can have; it is {rows}"
        )));
    }
    let files = PartyFiles::read(&arguments.file)?;
    let setup = files.setup(Reporter::new(&files.file.party, Log::Human))?;
    let report = report(&files, &setup, arguments.rows)?;
    Ok(match arguments.json {
        true => format!("{}\n", serde_json::to_string(&report)?),
        false => text(&report),
    })
}

/// Computes the outlook for a number of primary rows, if the owner knows one.
pub(super) fn report(
    files: &PartyFiles,
    setup: &PartySetup,
    rows: Option<usize>,
) -> anyhow::Result<CheckReport> {
    let primary = files.roster.primary();
    let subject = Subject::new(setup, &files.roster)?;
    let (about, form) = outlook::answers(&subject.settings, subject.place).map_err(input)?;
    let split = &setup.experiment.split;
    let parts = Parts::Random { validation: split.validation, test: split.test };
    let plan = |rows| PlannedRun::new(&subject.settings, PrimarySize { rows, parts: &parts }, subject.place);
    let planned = rows.filter(|_| form.is_some()).map(plan).transpose();
    let planned = planned.map_err(|problem| input(format!("--rows: {problem}")))?;
    let columns = subject.covers.columns.clone();
    let width = columns.len();
    let release = setup.experiment.release.as_ref().zip(subject.release.as_ref());
    let epsilon_of_batch = planned.as_ref().and_then(|planned| planned.epsilon_of_prediction(subject.delta));
    Ok(CheckReport {
        party: files.file.party.clone(),
        hash: subject.hash.clone(),
        experiment: setup.experiment.name.clone(),
        columns,
        primary: MemberView { name: primary.name.to_string(), key: primary.identity.to_string() },
        linker: LinkerView {
            kind: setup.experiment.linker.kinds(),
            neighbours: about.neighbours,
            party_learns: about.reveals.secondary.to_string(),
            primary_learns: about.reveals.primary.to_string(),
            eavesdropper_learns: about.reveals.eavesdropper.to_string(),
        },
        answers: form.map(|form| answers(&form, setup, width, rows.zip(planned.as_ref()))),
        release: release.map(|(slot, loss)| ReleaseView {
            kind: slot.kind().to_string(),
            neighbouring: serde_json::json!(loss.relation).as_str().unwrap_or_default().to_string(),
        }),
        privacy: privacy(&subject, planned.as_ref())?,
        predictions: predictions(setup, epsilon_of_batch),
        lifetime: lifetime(&subject, setup, planned.as_ref())?,
        approval: approval(&subject, files.file.approval.required)?,
        rehearsal: setup.rehearsal,
    })
}

fn answers(
    form: &AnswerForm,
    setup: &PartySetup,
    columns: usize,
    planned: Option<(usize, &PlannedRun)>,
) -> AnswerView {
    let AnswerForm {
        positions, evaluation_width, epochs, learns, similarities, summed, averaged_every, ..
    } = *form;
    AnswerView {
        aggregator: setup.experiment.aggregator.kind().to_string(),
        summed,
        positions,
        width: form.width.unwrap_or(columns),
        evaluation_width,
        epochs,
        learns,
        similarities,
        averaged_every,
        rows: planned.map(|(rows, _)| rows),
        rounds: planned.map(|(_, planned)| planned.rounds()),
    }
}

fn privacy(subject: &Subject, planned: Option<&PlannedRun>) -> anyhow::Result<PrivacyView> {
    let slot = &subject.settings.privacy;
    let is_identity = slot.build(&()).map_err(input)?.is_identity();
    let epsilon = planned.filter(|_| !is_identity).and_then(|planned| planned.epsilon(subject.delta));
    Ok(PrivacyView {
        mechanism: slot.kind().to_string(),
        needs_rows: !is_identity && planned.is_none(),
        epsilon: epsilon.or(subject.release_epsilon()),
        delta: subject.delta,
    })
}

fn predictions(setup: &PartySetup, epsilon_of_batch: Option<f64>) -> PredictionView {
    let policy = setup.policy();
    let used = std::fs::read_to_string(setup.own_folder().join("predictions")).unwrap_or_default();
    PredictionView {
        allowed: policy.predictions,
        most: Some(policy.most_predictions).filter(|most| *most > 0),
        used: used.trim().parse().unwrap_or(0),
        epsilon_of_batch,
    }
}

fn lifetime(
    subject: &Subject,
    setup: &PartySetup,
    planned: Option<&PlannedRun>,
) -> anyhow::Result<LifetimeView> {
    let account = Lifetime::open(&subject.folder).map_err(input)?;
    let finite = |epsilon: f64| Some(epsilon).filter(|epsilon| epsilon.is_finite());
    let with = match (&subject.release, planned) {
        (Some(release), _) => Some(outlook::total_with(&account, &release.loss)),
        (None, planned) => planned.map(|planned| planned.with_account(&account)),
    };
    Ok(LifetimeView {
        runs: account.runs().iter().filter(|run| !run.is_none()).count(),
        before: finite(account.total().epsilon(subject.delta)),
        with_run: with.and_then(|total| finite(total.epsilon(subject.delta))),
        limit: Some(setup.policy().lifetime_epsilon).filter(|limit| *limit > 0.0),
    })
}

fn approval(subject: &Subject, required: bool) -> anyhow::Result<ApprovalView> {
    let failed = |problem: NotApproved| match problem {
        NotApproved::Journal(problem) => input(problem),
        problem => input(problem),
    };
    if !subject.folder.is_dir() {
        return Ok(ApprovalView { required, approvals: Vec::new() });
    }
    let mut approvals = Approvals::open(&subject.folder).map_err(failed)?;
    let known = approvals.known().map_err(failed)?;
    let own = known.iter().filter(|known| known.approval.hash == subject.hash);
    let line = |known: &super::approval::Known| ApprovalLine {
        number: known.approval.number,
        time: known.approval.time.clone(),
        state: known.state(),
        limits: known.approval.limits.to_string(),
        runs: known.runs.len(),
        predictions: known.predictions,
    };
    Ok(ApprovalView { required, approvals: own.map(line).collect() })
}

fn shown(epsilon: Option<f64>) -> String {
    epsilon.map_or_else(|| "no bound".to_string(), |epsilon| format!("ε = {epsilon:.4}"))
}

/// Returns the outlook as text.
pub(super) fn text(report: &CheckReport) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: String| {
        let mut lines = value.lines();
        let _ = writeln!(text, "{name:<12}{}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(text, "{:12}{line}", "");
        }
    };
    add("party", format!("{}; columns: {}", report.party, report.columns.join(", ")));
    add(
        "settings",
        format!("{}\n{} of the experiment {}", report.hash, "the common settings", report.experiment),
    );
    add("primary", format!("{}, key {}", report.primary.name, report.primary.key));
    let LinkerView { kind, neighbours, party_learns, primary_learns, eavesdropper_learns } = &report.linker;
    let records = if *neighbours == 1 { "record" } else { "records" };
    add(
        "linker",
        format!(
            "{kind}: {neighbours} {records} of this table for each primary row\nthis party learns: {party_learns}\n\
             the primary learns: {primary_learns}\nan eavesdropper learns: {eavesdropper_learns}"
        ),
    );
    add("leaves", leaves(report));
    add("privacy", privacy_words(report));
    add("predictions", prediction_words(&report.predictions));
    add("lifetime", lifetime_words(report));
    add("approval", approval_words(&report.approval));
    text
}

fn leaves(report: &CheckReport) -> String {
    if let Some(ReleaseView { kind, neighbouring }) = &report.release {
        return format!("only one release (`{kind}`), for the relation {neighbouring}");
    }
    let Some(answers) = &report.answers else {
        return "nothing: the method works without the other parties".to_string();
    };
    let AnswerView { positions, width, epochs, .. } = answers;
    let often = match answers.learns {
        true => format!("in each of {epochs} epochs"),
        false => "once".to_string(),
    };
    let bytes = 4 * positions * width;
    let mut text = format!("for each primary row: {positions} x {width} numbers ({bytes} bytes), {often}");
    if let Some(width) = answers.evaluation_width {
        let _ = write!(text, "; {positions} x {width} numbers outside the training");
    }
    if let Some((rows, rounds)) = answers.rows.zip(answers.rounds) {
        let _ = write!(text, "\nfor {rows} primary rows: {rounds} rounds");
    }
    let _ = match answers.summed {
        true => write!(
            text,
            "\naggregator {}: the primary sees only the sum over the parties",
            answers.aggregator
        ),
        false => write!(text, "\naggregator {}: the primary sees them in the clear", answers.aggregator),
    };
    text += match answers.similarities {
        true => "\nthe similarities of the linked records leave, too",
        false => "\nthe links and their similarities stay here",
    };
    text += match answers.learns {
        true => "\ngradients come back, and this party's model learns from them",
        false => "\nno gradient comes back: this party's model does not learn",
    };
    if let Some(every) = answers.averaged_every.filter(|every| *every > 0) {
        let _ = write!(text, "\nthe averaged parameters of this party's model leave every {every} epochs");
    }
    text
}

fn privacy_words(report: &CheckReport) -> String {
    let PrivacyView { mechanism, needs_rows, epsilon, delta } = &report.privacy;
    let rehearsal = if report.rehearsal { "; this is a rehearsal, which hides nothing" } else { "" };
    match (&report.release, needs_rows) {
        (None, _) if report.answers.is_none() => "nothing leaves".to_string(),
        (Some(_), _) => format!("the release has {} at δ = {delta:e}{rehearsal}", shown(*epsilon)),
        (None, true) => {
            format!("mechanism {mechanism}: ε follows from the number of primary rows (--rows){rehearsal}")
        }
        (None, false) => {
            format!(
                "mechanism {mechanism}: {} for the run as planned, at δ = {delta:e}{rehearsal}",
                shown(*epsilon)
            )
        }
    }
}

fn prediction_words(predictions: &PredictionView) -> String {
    let PredictionView { allowed, most, used, epsilon_of_batch } = predictions;
    let mut text = match (allowed, most) {
        (false, _) => return "refused (`policy.predictions`)".to_string(),
        (true, Some(most)) => format!("at most {most} new records over all runs, {used} so far"),
        (true, None) => format!("any number of new records, {used} so far"),
    };
    if let Some(epsilon) = epsilon_of_batch {
        let _ = write!(
            text,
            "\neach batch of new records has ε = {epsilon:.4} by itself, up to the lifetime limit"
        );
    }
    text
}

fn lifetime_words(report: &CheckReport) -> String {
    let LifetimeView { runs, before, with_run, limit } = &report.lifetime;
    let with = match report.privacy.needs_rows {
        true => "ε with this run follows from --rows".to_string(),
        false if report.answers.is_none() && report.release.is_none() => "this run adds nothing".to_string(),
        false => format!("with this run {}", shown(*with_run)),
    };
    let limit = limit.map_or_else(|| "no limit".to_string(), |limit| format!("limit {limit}"));
    let delta = report.privacy.delta;
    format!("{} in {runs} earlier runs; {with}; δ = {delta:e}; {limit}", shown(*before))
}

fn approval_words(view: &ApprovalView) -> String {
    let mut text = match view.required {
        true => "required (`approval.required`)".to_string(),
        false => "not required: the policy alone decides (`approval.required`)".to_string(),
    };
    for ApprovalLine { number, time, state, limits, runs, predictions } in &view.approvals {
        let used = format!("{runs} runs and {predictions} records for predictions are used");
        let _ = write!(text, "\napproval {number} of {time}: {state}; {limits}; {used}");
    }
    if view.approvals.is_empty() {
        text += "\nthe owner has not approved these settings";
    }
    text
}
