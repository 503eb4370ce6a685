//! Two trainings, clients of a service of predictions and commands for predictions share the parties, while
//! processes are killed and started again. All results must be those of undisturbed commands.

mod clients;
mod commands;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::process::{LOOK, Process};
use crate::soak::compare::without_similarities;
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::server::free_port;
use crate::soak::world::SoakWorld;
use clients::{Asked, Clients, Outcome, Question, ServiceTimes, ask};
use commands::{Repeated, Task};

const AREA: &str = "serve";
/// Number of kills in a case.
const KILLS: u32 = 5;
/// Number of clients of the service.
const CLIENTS: usize = 8;
/// Number of different requests in each form, for a row and for several rows each.
const QUESTIONS: usize = 12;
/// Maximum number of rows of a request.
const MOST_ROWS: usize = 60;
/// Limit of a party's policy on predictions.
const MOST_PREDICTIONS: u64 = 10_000_000;
/// Maximum number of rows that a killed party counts too many: a thousandth of the limit, and the rows of
/// requests that it has not answered.
const TOO_MANY: u64 = MOST_PREDICTIONS / 1000 + 1000;
/// Maximum number of programs of the primary at a party. Each killed program counts for 15 s.
const MOST_PROGRAMS: usize = 32;

/// Process to kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Party,
    Server,
    Service,
    Training,
}

const VICTIMS: [(Victim, &str); 4] = [
    (Victim::Party, "a party"),
    (Victim::Server, "the server"),
    (Victim::Service, "the service"),
    (Victim::Training, "a training"),
];

pub(super) fn cases() -> Vec<Case<Kit>> {
    let case = |name: &str, victims: Vec<Victim>| {
        let run = move |kit: &Kit, folder: &Path, rng: &mut ChaCha8Rng| served(kit, folder, &victims, rng);
        Case::new(AREA, name, run).seeded()
    };
    let all = VICTIMS.map(|(victim, _)| victim).to_vec();
    let mut cases = vec![case("no process killed", Vec::new())];
    cases.extend(VICTIMS.map(|(victim, name)| case(&format!("{name} killed"), vec![victim])));
    cases.push(case("any process killed", all).short(true));
    cases
}

fn experiment() -> SoakExperiment {
    SoakExperiment::new(Data::Places).with("train", "{ epochs = 12, batch_size = 8 }")
}

/// Runs the case: kills random processes of `victims`.
fn served(kit: &Kit, folder: &Path, victims: &[Victim], rng: &mut ChaCha8Rng) -> anyhow::Result<CaseResult> {
    let world = SoakWorld::new(kit, folder, experiment(), true, 30)?;
    let policy =
        format!("\n[policy]\npredictions = true\nleast_rows = 1\nmost_predictions = {MOST_PREDICTIONS}\n");
    for member in &world.members()[1..] {
        let more = format!("most_programs = {MOST_PROGRAMS}\n");
        std::fs::write(
            world.member_folder(member).join("party.toml"),
            world.party_file(member, &more, &policy),
        )?;
    }
    let mut scene = Scene::new(world)?;
    let questions = scene.questions(rng)?;
    let (url, times) = (scene.url(), ServiceTimes::default());
    times.listens();
    let clients = Clients::new(&url, &questions, kit.patience(2), &times);
    let kills = if victims.is_empty() { 0 } else { kit.kills.unwrap_or(KILLS) };
    let ended = std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let rng = ChaCha8Rng::seed_from_u64(rng.random());
            scope.spawn(|| clients.work(rng));
        }
        let disturbed = scene.disturb(victims, kills, &clients, &times, rng);
        clients.stop();
        disturbed
    });
    let asked = clients.asked();
    if let Err(error) = ended.and_then(|()| scene.end(&questions, &asked)) {
        scene.verdict.fault(FaultKind::WrongCode, format!("{error:#}"));
    }
    scene.note_figures(&asked);
    Ok(scene.verdict)
}

/// Processes of a case.
struct Scene<'a> {
    world: SoakWorld<'a>,
    parties: Vec<Process>,
    service: Process,
    port: u16,
    /// The two trainings, then the commands for predictions.
    commands: Vec<Repeated>,
    kills: BTreeMap<Victim, u32>,
    /// Rows that undisturbed requests asked for.
    rows: u64,
    verdict: CaseResult,
}

impl<'a> Scene<'a> {
    /// Finishes a run, and starts its service.
    fn new(world: SoakWorld<'a>) -> anyhow::Result<Self> {
        let patience = world.kit.patience(60);
        let mut verdict = CaseResult::new(CaseEnd::Equal);
        let parties = world.parties()?;
        let ended = world.run(patience)?;
        ensure!(ended.code == Some(0), "the run: {}: {}", ended.describe(), ended.stderr);
        world.compare(&mut verdict)?;
        let port = free_port()?;
        let service = start_service(&world, port)?;
        let mut scene = Self {
            world,
            parties,
            service,
            port,
            commands: Vec::new(),
            kills: BTreeMap::new(),
            rows: 0,
            verdict,
        };
        scene.service_listens()?;
        let began = Instant::now();
        while !scene.service.stderr().contains("serve: ready") {
            let ended = scene.service.ended()?.is_some();
            ensure!(!ended && began.elapsed() < patience, "the service: {}", scene.service.stderr());
            std::thread::sleep(LOOK);
        }
        Ok(scene)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until the service listens.
    fn service_listens(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let ended = self.service.ended()?.is_some();
            let is_late = began.elapsed() > self.world.kit.patience(30);
            ensure!(!ended && !is_late, "the service does not listen: {}", self.service.stderr());
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns requests with their answers by the undisturbed service. The answers must have the predictions
    /// of the simulation.
    fn questions(&mut self, rng: &mut ChaCha8Rng) -> anyhow::Result<Vec<Question>> {
        let primary = self.world.member_folder("primary");
        let table = self.world.experiment.files().remove(0).text;
        std::fs::write(primary.join("new.csv"), &table)?;
        let own = self.world.folder.join("simulation");
        std::fs::create_dir_all(&own)?;
        std::fs::write(own.join("new.csv"), &table)?;
        let run = self.world.kit.simulation(&self.world.experiment)?.to_string_lossy().into_owned();
        self.world
            .kit
            .output_of(&own, &["predict", &run, "--rows", "new.csv", "--out", "new-predictions.csv"])?;
        let expected = without_similarities(&std::fs::read_to_string(own.join("new-predictions.csv"))?);
        let lines: Vec<&str> = table.lines().collect();
        let mut questions = Vec::new();
        for number in 0..4 * QUESTIONS {
            let rows = if number % 2 == 0 { 1 } else { rng.random_range(2..=MOST_ROWS) };
            let first = rng.random_range(0..lines.len() - rows);
            let asked = &lines[1 + first..1 + first + rows];
            let (media_type, body) = match number % 4 {
                0 | 1 => ("text/csv", format!("{}\n{}\n", lines[0], asked.join("\n"))),
                _ => ("application/json", json(lines[0], asked)),
            };
            let mut question = Question { media_type, body, rows: [first, rows], answer: Vec::new() };
            let patience = self.world.kit.patience(30);
            match ask(&self.url(), &question, patience, patience) {
                Outcome::Answer(answer) => question.answer = answer,
                outcome => anyhow::bail!("the undisturbed service: {outcome:?}"),
            }
            self.rows += rows as u64;
            if media_type == "text/csv" && question.answer != part(&expected, first, rows).as_bytes() {
                let answer = String::from_utf8_lossy(&question.answer).into_owned();
                self.verdict.fault(
                    FaultKind::WrongBytes,
                    format!("the undisturbed service differs from the simulation: {answer}"),
                );
            }
            questions.push(question);
        }
        let predictions = |by: String| Task::Predictions { by, expected: expected.clone() };
        self.commands = vec![
            Repeated::new("second", Task::Training),
            Repeated::new("third", Task::Training),
            Repeated::new("direct", predictions("out".into())),
            Repeated::new("served", predictions(self.url())),
        ];
        Ok(questions)
    }

    /// Kills processes at random times while the clients ask, and starts them again. Then waits for the ends
    /// of the trainings.
    fn disturb(
        &mut self,
        victims: &[Victim],
        kills: u32,
        clients: &Clients<'_>,
        times: &ServiceTimes,
        rng: &mut ChaCha8Rng,
    ) -> anyhow::Result<()> {
        let mut left = kills;
        while left > 0 {
            self.pause(clients, rng)?;
            let count = if left > 1 && rng.random_range(0..5) == 0 { 2 } else { 1 };
            let chosen: Vec<(Victim, usize)> = (0..count)
                .map(|_| (victims[rng.random_range(0..victims.len())], rng.random_range(0..2)))
                .collect();
            let pause = Duration::from_millis(rng.random_range(0..600));
            left -= self.strike(&chosen, pause, times)?;
            self.check_counts(&clients.asked())?;
        }
        self.await_ends()
    }

    /// Waits a random time: half of the times only after the service has answered again.
    fn pause(&mut self, clients: &Clients<'_>, rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
        let before = clients.asked().answers;
        let patience = self.world.kit.patience(60);
        let waits = rng.random_range(0..2) == 0;
        let spread = if waits { 3000 } else { 2000 };
        let began = Instant::now();
        while waits && clients.asked().answers < before + 20 {
            ensure!(began.elapsed() < patience, "no answers for {patience:?}: {}", self.service.stderr());
            self.tend()?;
        }
        let until = Instant::now() + Duration::from_millis(rng.random_range(0..spread));
        while Instant::now() < until {
            self.tend()?;
        }
        Ok(())
    }

    /// Waits a moment, and starts ended commands again.
    fn tend(&mut self) -> anyhow::Result<()> {
        std::thread::sleep(Duration::from_millis(5));
        for command in &mut self.commands {
            command.tend(&self.world, &mut self.verdict)?;
        }
        if let Some(ended) = self.service.ended()? {
            anyhow::bail!("the service ended by itself: {}: {}", ended.describe(), ended.stderr);
        }
        Ok(())
    }

    /// Kills the chosen processes, and starts them again after a pause. Returns the number of killed
    /// processes.
    fn strike(
        &mut self,
        chosen: &[(Victim, usize)],
        pause: Duration,
        times: &ServiceTimes,
    ) -> anyhow::Result<u32> {
        let mut chosen = chosen.to_vec();
        for (victim, place) in &mut chosen {
            if matches!(victim, Victim::Server | Victim::Service) {
                *place = 0;
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        // A party or a training that starts without the server would end with 75.
        chosen.sort_by_key(|(victim, _)| *victim != Victim::Server);
        let mut struck = 0;
        for &(victim, place) in &chosen {
            let is_struck = match victim {
                Victim::Party => {
                    self.parties[place].kill();
                    true
                }
                Victim::Server => {
                    self.world.server.stop();
                    true
                }
                Victim::Service => {
                    times.ends();
                    self.service.kill();
                    true
                }
                Victim::Training => self.commands[place].kill(),
            };
            *self.kills.entry(victim).or_default() += u32::from(is_struck);
            struck += u32::from(is_struck);
        }
        self.verdict.note(format!("{chosen:?} for {pause:?}"));
        std::thread::sleep(pause);
        for &(victim, place) in &chosen {
            match victim {
                Victim::Party => self.parties[place] = self.world.party(self.world.members()[place + 1])?,
                Victim::Server => self.world.server.resume()?,
                Victim::Service => {
                    self.service = start_service(&self.world, self.port)?;
                    self.service_listens()?;
                    times.listens();
                }
                // `tend` starts it again.
                Victim::Training => {}
            }
        }
        Ok(struck)
    }

    /// Waits until the trainings and the commands for predictions have ended.
    fn await_ends(&mut self) -> anyhow::Result<()> {
        self.commands.iter_mut().for_each(Repeated::end);
        let (began, patience) = (Instant::now(), self.world.kit.patience(180));
        while self.commands.iter().any(Repeated::runs) {
            self.tend()?;
            if began.elapsed() > patience {
                let left: Vec<String> =
                    self.commands.iter().filter(|command| command.runs()).map(Repeated::describe).collect();
                anyhow::bail!("the commands do not end: {}", left.join("\n"));
            }
        }
        Ok(())
    }

    /// Checks that every party has counted at least the answered rows.
    fn check_counts(&mut self, asked: &Asked) -> anyhow::Result<()> {
        let rows = self.rows + asked.rows + self.commands.iter().map(Repeated::rows).sum::<u64>();
        for member in &self.world.members()[1..] {
            let count = count(&self.world, member)?;
            if count < rows {
                let what = format!("{member} counts {count} predictions, but {rows} rows were answered");
                self.verdict.fault(FaultKind::Files, what);
            }
        }
        Ok(())
    }

    /// Asks each question until it is answered.
    fn answer_all(&mut self, questions: &[Question]) -> anyhow::Result<()> {
        let (url, patience) = (self.url(), self.world.kit.patience(30));
        for question in questions {
            let began = Instant::now();
            loop {
                let outcome = ask(&url, question, patience, patience);
                self.rows += question.rows[1] as u64;
                match outcome {
                    Outcome::Answer(answer) if answer == question.answer => break,
                    Outcome::Answer(_) => {
                        let what = "after all kills, the service gives a wrong answer";
                        self.verdict.fault(FaultKind::WrongBytes, what);
                        break;
                    }
                    outcome => ensure!(began.elapsed() < patience, "after all kills: {outcome:?}"),
                }
            }
        }
        Ok(())
    }

    /// Adds the figures and the faults of the clients.
    fn note_figures(&mut self, asked: &Asked) {
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let kills: Vec<String> = VICTIMS
            .iter()
            .map(|(victim, name)| format!("{} of {name}", self.kills.get(victim).copied().unwrap_or(0)))
            .collect();
        let statuses: Vec<String> =
            asked.statuses.iter().map(|(status, count)| format!("{count} with {status}")).collect();
        self.verdict.note(format!("kills: {}", kills.join(", ")));
        self.verdict.note(format!(
            "{} requests: {} answers ({} rows), {} refused ({}), {} without a connection, {} wrong, {} lost; longest \
             request {}, at most {} past its deadline; longest time without an answer {}",
            asked.requests(),
            asked.answers,
            asked.rows,
            asked.statuses.values().sum::<u64>(),
            statuses.join(", "),
            asked.unreached,
            asked.wrong,
            asked.lost,
            seconds(asked.longest),
            seconds(asked.longest_past),
            seconds(asked.longest_silence)
        ));
        let commands: Vec<String> = self.commands.iter().map(Repeated::summary).collect();
        self.verdict.note(commands.join("; "));
        let refused = asked.statuses.get(&503).copied().unwrap_or(0);
        if self.kills.is_empty() && (refused > 0 || self.commands.iter().any(Repeated::was_interrupted)) {
            let what =
                format!("no process was killed, but {refused} requests ended with 503, or a command with 75");
            self.verdict.fault(FaultKind::WrongRefusal, what);
        }
        for what in &asked.faults {
            let kind = match what.split_whitespace().next() {
                Some("wrong") => FaultKind::WrongBytes,
                Some("no") => FaultKind::Hang,
                _ => FaultKind::WrongRefusal,
            };
            self.verdict.fault(kind, what.as_str());
        }
    }

    /// Asks all questions once more, ends the service and the parties in order, and reads the counts and
    /// accounts that they leave.
    fn end(&mut self, questions: &[Question], asked: &Asked) -> anyhow::Result<()> {
        self.answer_all(questions)?;
        self.check_counts(asked)?;
        self.world.check(&mut self.parties, &mut self.verdict)?;
        let patience = self.world.kit.patience(30);
        for process in [&mut self.service].into_iter().chain(&mut self.parties) {
            process.signal(Signal::INT);
            let ended = process.wait(patience)?;
            if ended.code != Some(0) {
                let what = format!("after SIGINT: {}: {}", ended.describe(), ended.stderr);
                self.verdict.fault(FaultKind::WrongCode, what);
            }
        }
        self.check_counts(asked)?;
        let kills = u64::from(self.kills.get(&Victim::Party).copied().unwrap_or(0));
        for member in &self.world.members()[1..] {
            let (count, linked) = (count(&self.world, member)?, linked(&self.world, member)?);
            if !(linked..=linked + kills * TOO_MANY).contains(&count) {
                let what = format!("{member} counts {count} predictions, but has linked {linked} rows");
                self.verdict.fault(FaultKind::Files, what);
            }
            let own = self.world.member_folder(member);
            let account = self.world.kit.output_of(&own, &["ledger", "show", "party.toml", "--json"])?;
            let _: serde_json::Value = serde_json::from_str(&account)?;
            self.verdict.note(format!("{member} has linked {linked} rows and counts {count}"));
        }
        Ok(())
    }
}

/// Returns a party's count of predictions.
fn count(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<u64> {
    let path = world.member_folder(member).join("state/party/predictions");
    Ok(std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?.trim().parse()?)
}

/// Returns the number of rows that a party has linked for predictions, from the logs of all its processes.
fn linked(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<u64> {
    let mut rows = 0;
    for entry in std::fs::read_dir(world.member_folder(member))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("party") && name.ends_with(".err") {
            let text = std::fs::read_to_string(entry.path())?;
            let lines = text.lines().filter_map(|line| line.split_once(" new records were linked"));
            rows += lines.filter_map(|(line, _)| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>();
        }
    }
    Ok(rows)
}

fn start_service(world: &SoakWorld<'_>, port: u16) -> anyhow::Result<Process> {
    let listen = format!("127.0.0.1:{port}");
    let arguments = ["serve", "out", "--parties", "roster.toml", "--key", "own.key", "--listen", &listen];
    Process::start(&world.kit.fet, &arguments, &world.member_folder("primary"), "serve")
}

/// Returns rows of a table in CSV as a request in JSON.
fn json(header: &str, rows: &[&str]) -> String {
    let row = |line: &&str| -> serde_json::Value {
        header.split(',').map(String::from).zip(line.split(',').map(serde_json::Value::from)).collect()
    };
    serde_json::json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() }).to_string()
}

/// Returns the predictions of a part of the rows, counted from 0 again.
fn part(predictions: &str, first: usize, rows: usize) -> String {
    let mut lines = predictions.lines();
    let header = lines.next().unwrap_or_default();
    let rows = lines.skip(first).take(rows).enumerate();
    let line = |(number, line): (usize, &str)| {
        let (_, rest) = line.split_once(',').unwrap_or_default();
        format!("{number},{rest}\n")
    };
    format!("{header}\n{}", rows.map(line).collect::<String>())
}
