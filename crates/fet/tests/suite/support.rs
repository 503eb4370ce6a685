//! Small data with a known answer, experiments on this data, and the devices of this build.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fet_backends::{Backend, BackendError};
use fet_core::data::{Bounds, Matrix, Metadata, PartyTable, Standardise, Task, VerticalData};
use fet_core::experiment::{Experiment, set};
use fet_core::message::{PROTOCOL_VERSION, Parts, Reply, Request, Round, Terms};
use fet_core::parameters::Parameters;
use fet_core::party::{Failure, Party};
use fet_core::rng::{OwnSeed, Purpose, stream};
use fet_eval::records::{Cost, Report};
use fet_federation::prepare::divide;
use fet_federation::report::RESULTS_VERSION;
use fet_federation::secondary::{PartyConfig, Store};
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::{RunError, StepReport, Trainer};
use fet_privacy::identity::Identity;
use fet_testing::left_out;
use rand::RngExt;

/// Returns the number of lines of a message, without the line of a TOML file that may follow with its number and a mark.
pub(crate) fn message_lines(message: &str) -> usize {
    let is_excerpt = |line: &&str| {
        let rest = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        rest.is_empty() || rest.starts_with('|') || rest.starts_with("-->")
    };
    message.lines().filter(|line| !is_excerpt(line)).count()
}

/// Returns every device of this build that this machine can open.
pub(crate) fn devices() -> Vec<Backend> {
    let mut found = Vec::new();
    for name in fet_backends::NAMES {
        match fet_backends::open(name) {
            Ok(backend) => found.push(backend),
            Err(BackendError::NotCompiled { feature, .. }) => {
                left_out(feature, &format!("{name} is not compiled in"))
            }
            Err(error @ (BackendError::NoGpu { .. } | BackendError::NoCuda { .. })) => {
                left_out(if name == "libtorch-cuda" { "gpu" } else { name }, &error.to_string());
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    found
}

/// Returns the device of tests that need only one device.
pub(crate) fn flex() -> Backend {
    fet_backends::open("flex").expect("flex is always compiled in")
}

/// Returns points in the unit square.
///
/// Each of two secondaries has a noisy copy of every point with one private number. The label is a function
/// of all three parties' numbers.
pub(crate) fn square(rows: usize, task: Task) -> VerticalData {
    let mut rng = stream(5, 0, Purpose::Parties, 0);
    let points: Vec<f64> = (0..2 * rows).map(|_| rng.random()).collect();
    let mut column = || (0..rows).map(|_| rng.random::<f32>() - 0.5).collect::<Vec<f32>>();
    let (own, first, second) = (column(), column(), column());
    let score = |i: usize| 1.5 * own[i] + 1.5 * first[i] - 1.5 * second[i];
    let label = |i: usize| match task {
        Task::Regression => 100.0 + 10.0 * score(i),
        Task::Binary => f32::from(u8::from(score(i) > 0.0)),
        Task::Multiclass => [0.0, 1.0, 2.0][usize::from(score(i) > -0.3) + usize::from(score(i) > 0.3)],
    };
    let labels = (0..rows).map(|row| f64::from(label(row))).collect();
    let mut noise = stream(5, 0, Purpose::KeyNoise, 0);
    let mut secondary = |name: &str, column: &[f32]| {
        let keys = points.iter().map(|x| x + 0.001 * (noise.random::<f64>() - 0.5)).collect();
        let order: Vec<usize> = (0..rows).rev().collect();
        PartyTable {
            name: name.to_string(),
            keys: Matrix::new(2, keys).select_rows(&order).into(),
            features: Matrix::new(1, column.to_vec()).select_rows(&order).into(),
            bounds: Some(Bounds { keys: vec![[-0.01, 1.01]; 2], features: vec![[-0.5, 0.5]] }),
        }
    };
    VerticalData {
        task,
        classes: 3,
        secondaries: vec![secondary("first", &first), secondary("second", &second)],
        primary: PartyTable {
            name: "primary".to_string(),
            keys: Matrix::new(2, points.clone()).into(),
            features: Matrix::new(1, own).into(),
            bounds: None,
        },
        labels,
        standardise: Standardise::ALL,
        metadata: Metadata::default(),
    }
}

/// Returns regression data with `parties` secondaries; from the third on they equal the first.
pub(crate) fn square_of(rows: usize, parties: usize) -> VerticalData {
    let names: Vec<String> = (3..=parties).map(|number| format!("number {number}")).collect();
    with_copies(square(rows, Task::Regression), &names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Adds secondaries with these names, copies of the first.
pub(crate) fn with_copies(mut data: VerticalData, names: &[&str]) -> VerticalData {
    for name in names {
        let first = data.secondaries[0].clone();
        data.secondaries.push(PartyTable { name: name.to_string(), ..first });
    }
    data
}

/// Returns a small, quick experiment, changed by `sets` in the form of the command line.
pub(crate) fn experiment(sets: &[&str]) -> Experiment {
    let mut table = toml::Table::new();
    for assignment in [
        "name=test",
        "data.kind=split",
        "method.kind=fet",
        "method.hidden=16",
        "method.heads=2",
        "method.dropout=0.1",
        "linker.kind=nearest",
        "linker.neighbours=4",
        "train.batch_size=32",
    ]
    .iter()
    .chain(sets)
    {
        set(&mut table, assignment).expect("a well-formed assignment");
    }
    Experiment::from_table(table).expect("a sound experiment")
}

/// Returns a trainer for the experiment on the data.
pub(crate) fn trainer(
    experiment: &Experiment,
    data: VerticalData,
    backend: &Backend,
) -> Result<Trainer, RunError> {
    Simulation::new(experiment, &fet::run::machine(backend)).start(data)
}

/// Returns a trainer and its observable parties; the primary sees each party through `wrap`.
pub(crate) fn watched(
    experiment: &Experiment,
    data: VerticalData,
    backend: &Backend,
    mut wrap: impl FnMut(usize, ObservedParty) -> Box<dyn Party>,
) -> Result<(Trainer, Vec<ObservedParty>), RunError> {
    let machine = fet::run::machine(backend);
    let (primary, tables) = divide(data);
    let secondaries = Simulation::new(experiment, &machine).secondaries(tables)?;
    let watched: Vec<ObservedParty> = secondaries.into_iter().map(ObservedParty::new).collect();
    let parties = watched.iter().cloned().enumerate().map(|(index, party)| wrap(index, party)).collect();
    Ok((Trainer::new(experiment, primary, parties, Vec::new(), &machine)?, watched))
}

/// Returns a trainer and its observable parties.
pub(crate) fn open(
    experiment: &Experiment,
    data: VerticalData,
    backend: &Backend,
) -> (Trainer, Vec<ObservedParty>) {
    watched(experiment, data, backend, |_, party| Box::new(party)).expect("a trainer")
}

/// Returns the parameters of all parties, with the party as a prefix of each name: `primary`, `party1`, ...
pub(crate) fn model(trainer: &Trainer, parties: &[ObservedParty]) -> Parameters {
    let mut all = Parameters::default();
    let mut add = |name: &str, own: &Parameters| {
        for segment in own.segments() {
            let values = &own.values()[segment.range.clone()];
            all.push(&format!("{name}.{}", segment.name), &segment.shape, values);
        }
    };
    add("primary", trainer.primary().learner().parameters());
    for (index, party) in parties.iter().enumerate() {
        add(&format!("party{}", index + 1), party.lock().parameters().expect("it has joined"));
    }
    all
}

/// Party whose requests pass through a function, which also gets the party.
struct Intercepted<P, F> {
    party: P,
    ask: F,
}

impl<P: Party, F: FnMut(&mut P, Request) -> Result<Reply, Failure> + Send> Party for Intercepted<P, F> {
    fn name(&self) -> &str {
        self.party.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        (self.ask)(&mut self.party, request)
    }
}

/// Returns a party whose requests pass through `ask`.
pub(crate) fn intercepted<P: Party + 'static>(
    party: P,
    ask: impl FnMut(&mut P, Request) -> Result<Reply, Failure> + Send + 'static,
) -> Box<dyn Party> {
    Box::new(Intercepted { party, ask })
}

/// Returns a party that does not answer the requests for which `lost` returns true.
pub(crate) fn silent_party(
    party: impl Party + 'static,
    mut lost: impl FnMut(&Request) -> bool + Send + 'static,
) -> Box<dyn Party> {
    intercepted(
        party,
        move |party, request| {
            if lost(&request) { Err(Failure::Gone) } else { party.ask(request) }
        },
    )
}

/// Returns a party that drops out in the middle of the training step `from`, like a failing machine. A value above all steps means
/// never.
pub(crate) fn vanishing_party(party: impl Party + 'static, from: Arc<AtomicU64>) -> Box<dyn Party> {
    silent_party(party, move |request| {
        let from = from.load(Ordering::Relaxed);
        match request.round() {
            Some(Round::Train { step }) => step >= from,
            Some(_) => from == 0,
            None => false,
        }
    })
}

/// Returns the configuration of party `number` of `parties`, counted from 1, whose state is in memory.
pub(crate) fn party_config(
    experiment: &Experiment,
    table: PartyTable,
    number: usize,
    parties: usize,
) -> PartyConfig {
    let identity = |number: usize| Identity::from_secret([number as u8; 32]);
    PartyConfig {
        file: table.name.clone(),
        table,
        settings: experiment.common(),
        seed: OwnSeed::new([7; 32]),
        identity: identity(number),
        roster: (1..=parties).map(|party| identity(party).public()).collect(),
        policy: experiment.policy.clone(),
        device: flex().device,
        computation: Default::default(),
        evaluation_cache: 1 << 20,
        store: Store::Memory(Vec::new()),
        lifetime: None,
        model: None,
        start: None,
        tell: Arc::new(|_| ()),
    }
}

/// Returns the terms of the experiment for the first of two parties and 100 rows.
pub(crate) fn terms(experiment: &Experiment) -> Terms {
    let settings = experiment.common().to_toml();
    Terms {
        protocol: PROTOCOL_VERSION,
        results: RESULTS_VERSION,
        settings_hash: fet_io::sha256(settings.as_bytes()),
        settings,
        name: "first".to_string(),
        number: 1,
        parties: 2,
        rows: 100,
        parts: Parts::default(),
        standardise: Standardise::ALL,
    }
}

/// Trains one epoch, and returns the running mean loss after each step.
pub(crate) fn losses(trainer: &mut Trainer) -> Vec<f64> {
    let mut losses = Vec::new();
    let mut watch = |step: StepReport| {
        losses.push(step.loss);
        true
    };
    trainer.epoch(&mut watch).expect("the epoch is trained");
    losses
}

/// Returns the report of a run, without the only part that may differ between runs of the same seed.
pub(crate) fn report(folder: &Path) -> Report {
    let text = std::fs::read_to_string(folder.join("report.json")).expect("a report");
    let report: Report = serde_json::from_str(&text).expect("a report");
    Report { cost: Cost::default(), ..report }
}
