//! Kills processes at random moments, phase by phase, and starts them again: the final bytes must be the
//! same.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::process::Process;
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

const AREA: &str = "kill";

/// Phase of the run at the time of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Joining,
    Linking,
    Keys,
    Step,
    Saving,
    Finishing,
}

/// Process to kill or stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Primary,
    Party,
    /// The primary and a party at once.
    Both,
    All,
    /// The primary receives SIGTERM and ends by itself.
    TerminatedPrimary,
    /// A party pauses for a while and continues.
    Frozen,
}

/// Kills in one case.
#[derive(Debug, Clone, Copy)]
struct Kills {
    phase: Phase,
    victim: Victim,
    /// Maximum number of kills.
    most: u32,
}

const PHASES: [(Phase, &str); 6] = [
    (Phase::Joining, "joining"),
    (Phase::Linking, "linking"),
    (Phase::Keys, "keys"),
    (Phase::Step, "step"),
    (Phase::Saving, "saving"),
    (Phase::Finishing, "finishing"),
];
const VICTIMS: [(Victim, &str); 6] = [
    (Victim::Primary, "primary"),
    (Victim::Party, "party"),
    (Victim::Both, "primary and party"),
    (Victim::All, "all"),
    (Victim::TerminatedPrimary, "primary by SIGTERM"),
    (Victim::Frozen, "party frozen"),
];
/// Number of cases per phase and victim in the long form.
const EACH: usize = 4;
/// Exit code of an interrupted run.
const INTERRUPTED: i32 = 130;

pub(super) fn cases() -> Vec<Case<Kit>> {
    let mut cases = Vec::new();
    for (phase, phase_name) in PHASES {
        for (victim, victim_name) in VICTIMS {
            for number in 1..=EACH {
                // The primary hears of a restarted party only after some four seconds, so the short form
                // has few such cases.
                let short = number == 1
                    && matches!(victim, Victim::Primary | Victim::Party)
                    && !matches!(phase, Phase::Joining | Phase::Keys);
                let kills = Kills { phase, victim, most: if number == 1 { 1 } else { 3 } };
                let name = format!("{phase_name}, {victim_name}, {number}");
                let run =
                    move |kit: &Kit, folder: &Path, rng: &mut ChaCha8Rng| disturbed(kit, folder, kills, rng);
                cases.push(Case::new(AREA, name, run).short(short).seeded());
            }
        }
    }
    cases
}

/// Returns an experiment whose phase is long enough for a kill.
fn experiment(phase: Phase, rng: &mut ChaCha8Rng) -> SoakExperiment {
    let digits = || SoakExperiment::new(Data::Digits).rows(600);
    let secure = "{ kind = \"secure-average\" }";
    match phase {
        Phase::Joining => SoakExperiment::new(Data::Places),
        Phase::Linking => match rng.random_range(0..2) {
            0 => SoakExperiment::new(Data::Names).rows(1200),
            _ => SoakExperiment::new(Data::Exact)
                .rows(600)
                .with("linker", "{ kind = \"psi\", neighbours = 1 }"),
        },
        Phase::Keys => digits().with("aggregator", secure),
        Phase::Step | Phase::Saving | Phase::Finishing => {
            let train = "{ epochs = 6, batch_size = 32 }";
            let plain = digits().with("train", train);
            match rng.random_range(0..4) {
                0 => plain.with("aggregator", secure),
                1 => plain.with("privacy", "{ kind = \"discrete-gaussian\" }").with("aggregator", secure),
                2 => SoakExperiment::new(Data::People).with("train", train),
                _ => plain,
            }
        }
    }
}

fn disturbed(
    kit: &Kit,
    folder: &Path,
    Kills { phase, victim, most }: Kills,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let experiment = experiment(phase, rng);
    kit.simulation(&experiment)?;
    let world = SoakWorld::new(kit, folder, experiment, true, 20)?;
    let mut running = Running { parties: world.parties()?, primary: world.primary()?, world: &world };
    let patience = kit.patience(60);
    for number in 0..rng.random_range(1..=most) {
        let place = rng.random_range(0..running.parties.len());
        let began = Instant::now();
        let met = running.meet(phase, victim, place, rng)?;
        let wait = Duration::from_micros(rng.random_range(0..met.spread));
        std::thread::sleep(wait);
        let stop = running.strike(victim, place, &mut verdict, rng)?;
        verdict.note(format!(
            "{}: {victim:?} (party {}) after {:.3} s: {} and {:.3} ms",
            number + 1,
            place + 1,
            began.elapsed().as_secs_f64(),
            met.what,
            1e3 * wait.as_secs_f64()
        ));
        if stop {
            break;
        }
    }
    let mut ended = running.primary.wait(patience)?;
    if ended.hung {
        verdict.fault(FaultKind::Hang, format!("the primary: {}", ended.stderr));
    } else if ended.code == Some(INTERRUPTED) && victim == Victim::TerminatedPrimary {
        ended = world.run(patience)?;
    }
    if !ended.hung && ended.code != Some(0) {
        verdict.fault(FaultKind::WrongCode, format!("the primary: {}: {}", ended.describe(), ended.stderr));
    } else if !ended.hung {
        world.compare(&mut verdict)?;
    }
    world.check(&mut running.parties, &mut verdict)?;
    Ok(verdict)
}

/// Moment at which a process is struck.
struct Met {
    what: String,
    /// Maximum random delay after the moment, in microseconds.
    spread: u64,
}

struct Running<'a> {
    world: &'a SoakWorld<'a>,
    parties: Vec<Process>,
    primary: Process,
}

impl Running<'_> {
    /// Waits for a moment of the phase, or for the primary's end.
    fn meet(
        &mut self,
        phase: Phase,
        victim: Victim,
        place: usize,
        rng: &mut ChaCha8Rng,
    ) -> anyhow::Result<Met> {
        let epochs = rng.random_range(1..6);
        let (what, spread) = match phase {
            Phase::Joining => ("waiting for", 30_000),
            Phase::Linking | Phase::Keys => ("agreed to the terms", 60_000),
            Phase::Step => ("epochs", 40_000),
            Phase::Saving => ("saved", 2000),
            Phase::Finishing => ("the last epoch", 8000),
        };
        let own = self.world.members()[place + 1];
        let seen = || match victim {
            Victim::Primary | Victim::TerminatedPrimary => {
                listing(&self.world.member_folder("primary").join("out"))
            }
            _ => listing(&self.world.state_folder(own)),
        };
        let before = seen();
        let mut saves = if phase == Phase::Saving { rng.random_range(1..5) } else { 0 };
        let mut last = before;
        let began = Instant::now();
        // If the moment never comes, such as an epoch of a finished run, the process is struck nevertheless.
        while self.primary.ended()?.is_none() && began.elapsed() < Duration::from_secs(20) {
            let met = match phase {
                Phase::Joining => self.primary.stderr().contains("waiting for"),
                Phase::Linking | Phase::Keys => self.parties[place].stderr().contains("agreed to the terms"),
                Phase::Step => self.primary.stdout().matches("\"event\":\"epoch\"").count() + 1 >= epochs,
                Phase::Finishing => {
                    let said = self.primary.stdout();
                    said.contains("\"epoch\":5,") || said.contains("\"epoch\":6,")
                }
                Phase::Saving => {
                    let now = seen();
                    if now != last {
                        saves -= 1;
                        last = now;
                    }
                    saves == 0
                }
            };
            if met {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(Met { what: what.into(), spread })
    }

    /// Strikes the victim and starts it again. Returns true if the primary has ended.
    fn strike(
        &mut self,
        victim: Victim,
        place: usize,
        verdict: &mut CaseResult,
        rng: &mut ChaCha8Rng,
    ) -> anyhow::Result<bool> {
        let pause = Duration::from_millis(rng.random_range(0..120));
        let own = self.world.members()[place + 1];
        match victim {
            Victim::TerminatedPrimary => {
                self.primary.signal(Signal::TERM);
                let ended = self.primary.wait(self.world.kit.patience(30))?;
                if ended.hung {
                    verdict.fault(FaultKind::Hang, format!("after SIGTERM: {}", ended.stderr));
                } else if !matches!(ended.code, Some(0 | INTERRUPTED)) && ended.signal != Some(15) {
                    let what = format!("after SIGTERM: {}: {}", ended.describe(), ended.stderr);
                    verdict.fault(FaultKind::WrongCode, what);
                }
                std::thread::sleep(pause);
                self.primary = self.world.primary()?;
            }
            Victim::Frozen => {
                self.parties[place].signal(Signal::STOP);
                std::thread::sleep(pause * 20);
                self.parties[place].signal(Signal::CONT);
            }
            Victim::Primary => {
                self.primary.kill();
                std::thread::sleep(pause);
                self.primary = self.world.primary()?;
            }
            Victim::Party => {
                self.parties[place].kill();
                std::thread::sleep(pause);
                self.parties[place] = self.world.party(own)?;
            }
            Victim::Both => {
                self.primary.kill();
                self.parties[place].kill();
                std::thread::sleep(pause);
                self.parties[place] = self.world.party(own)?;
                self.primary = self.world.primary()?;
            }
            Victim::All => {
                self.primary.kill();
                self.parties.iter_mut().for_each(Process::kill);
                std::thread::sleep(pause);
                self.primary = self.world.primary()?;
                self.parties = self.world.parties()?;
            }
        }
        Ok(self.primary.ended()?.is_some())
    }
}

/// Returns the files of a folder with their sizes and times.
fn listing(folder: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            Some((entry.path(), about.len(), about.modified().ok()))
        })
        .collect();
    found.sort();
    found
}
