//! A disturbed connection between a member and the server, or a server that ends: the run gives the same
//! bytes, or a clear refusal that loses no data. After the disturbance, the same command gives the same
//! bytes.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::message::problems;
use crate::process::Process;
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::proxy::{Proxy, ProxyPlan, Trick};
use crate::soak::world::SoakWorld;

const AREA: &str = "path";
/// Number of cases per disturbance in the long form.
const EACH: usize = 4;
/// Time limit in seconds of a run with a disturbed connection.
const PATIENCE: u64 = 120;

/// Disturbance of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disturbance {
    Delay,
    Throttle,
    /// A link of 256 kbit/s and 300 ms, with large messages.
    SlowLink,
    /// Disturbances at random positions.
    Tricks(&'static [Trick]),
    /// Disturbances while the members connect for the first time.
    Early(&'static [Trick]),
    /// Occasional interruptions of at most the given number of milliseconds.
    Interruptions(u64),
    /// The server is killed and started again.
    Server,
    /// Permanent interruption from a random moment until the proxy is healed.
    Loss,
}

const ALL: &[Trick] =
    &[Trick::Cut, Trick::Flip(0), Trick::Repeat, Trick::Swap, Trick::Lose, Trick::Stall(700)];

const DISTURBANCES: &[(&str, Disturbance, bool)] = &[
    ("delay", Disturbance::Delay, true),
    ("throttle", Disturbance::Throttle, true),
    ("slow link", Disturbance::SlowLink, false),
    ("cut", Disturbance::Tricks(&[Trick::Cut]), true),
    ("flip", Disturbance::Tricks(&[Trick::Flip(0)]), true),
    ("repeat", Disturbance::Tricks(&[Trick::Repeat]), false),
    ("swap", Disturbance::Tricks(&[Trick::Swap]), false),
    ("lose", Disturbance::Tricks(&[Trick::Lose]), false),
    ("stall", Disturbance::Tricks(&[Trick::Stall(1500)]), false),
    ("all", Disturbance::Tricks(ALL), false),
    ("early", Disturbance::Early(ALL), false),
    ("parted", Disturbance::Interruptions(1500), false),
    ("parted for long", Disturbance::Interruptions(18_000), false),
    ("server", Disturbance::Server, true),
    ("gone", Disturbance::Loss, false),
];

pub(super) fn cases() -> Vec<Case<Kit>> {
    let mut cases = Vec::new();
    for &(name, disturbance, short) in DISTURBANCES {
        for tls in [true, false] {
            for number in 1..=EACH {
                let coat = if tls { "TLS" } else { "plain" };
                let run = move |kit: &Kit, folder: &Path, rng: &mut ChaCha8Rng| {
                    disturbed(kit, folder, disturbance, tls, rng)
                };
                let short = short && number == 1 && (tls || name == "flip");
                cases.push(Case::new(AREA, format!("{name}, {coat}, {number}"), run).short(short).seeded());
            }
        }
    }
    cases
}

fn plan(disturbance: Disturbance, rng: &mut ChaCha8Rng) -> ProxyPlan {
    match disturbance {
        Disturbance::Delay => {
            ProxyPlan { delay: Duration::from_millis(rng.random_range(5..=20)), ..ProxyPlan::default() }
        }
        Disturbance::Throttle => {
            ProxyPlan { rate: rng.random_range(60_000..400_000), ..ProxyPlan::default() }
        }
        Disturbance::SlowLink => {
            ProxyPlan { delay: Duration::from_millis(150), rate: 32_000, ..ProxyPlan::default() }
        }
        Disturbance::Tricks(tricks) => {
            let count = rng.random_range(1..=6);
            ProxyPlan::drawn(rng, tricks, count, 20_000)
        }
        Disturbance::Early(tricks) => {
            let count = rng.random_range(1..=3);
            ProxyPlan::drawn(rng, tricks, count, 700)
        }
        Disturbance::Interruptions(_) | Disturbance::Server | Disturbance::Loss => ProxyPlan::default(),
    }
}

fn experiment(disturbance: Disturbance, rng: &mut ChaCha8Rng) -> SoakExperiment {
    if disturbance == Disturbance::SlowLink {
        return SoakExperiment::new(Data::Digits)
            .rows(600)
            .with("method", "{ kind = \"fet\", hidden = 128, heads = 2 }")
            .with("train", "{ epochs = 1, batch_size = 480 }");
    }
    let train = match disturbance {
        Disturbance::Delay | Disturbance::Throttle => "{ epochs = 2, batch_size = 64 }",
        _ => "{ epochs = 6, batch_size = 32 }",
    };
    match rng.random_range(0..4) {
        0 => SoakExperiment::new(Data::People).with("train", train),
        1 => SoakExperiment::new(Data::Digits)
            .with("aggregator", "{ kind = \"secure-average\" }")
            .with("train", train),
        2 => SoakExperiment::new(Data::Exact)
            .with("linker", "{ kind = \"psi\", neighbours = 1 }")
            .with("train", train),
        _ => SoakExperiment::new(Data::Digits).rows(600).with("train", train),
    }
}

/// Run whose primary or one of whose parties connects through a proxy.
struct ProxiedRun<'a> {
    primary: Process,
    parties: Vec<Process>,
    proxy: Proxy,
    world: SoakWorld<'a>,
}

fn disturbed(
    kit: &Kit,
    folder: &Path,
    disturbance: Disturbance,
    tls: bool,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let experiment = experiment(disturbance, rng);
    kit.simulation(&experiment)?;
    let world = SoakWorld::new(kit, folder, experiment, tls, 20)?;
    let members = world.members();
    let member = members[rng.random_range(0..members.len())];
    let proxy = world.through(member, plan(disturbance, rng))?;
    verdict.note(format!("{member} through a connection with {:?}", proxy.plan()));
    let parties = world.parties()?;
    let mut run = ProxiedRun { primary: world.primary()?, parties, proxy, world };
    if matches!(disturbance, Disturbance::Interruptions(_) | Disturbance::Server | Disturbance::Loss) {
        run.interrupt(disturbance, rng, &mut verdict)?;
    }
    let ended = run.primary.wait(kit.patience(PATIENCE))?;
    let [up, down] = run.proxy.passed();
    verdict.note(format!(
        "{}; {up} bytes up, {down} down; {} tricks done",
        ended.describe(),
        run.proxy.tricks()
    ));
    run.proxy.heal();
    if ended.hung {
        verdict.fault(FaultKind::Hang, format!("the primary: {}", ended.stderr));
    } else if ended.code == Some(0) {
        run.world.compare(&mut verdict)?;
    } else {
        let harmless =
            matches!(disturbance, Disturbance::Delay | Disturbance::Throttle | Disturbance::SlowLink);
        if harmless || !matches!(ended.code, Some(2 | 75)) {
            let what = format!("the primary: {}: {}", ended.describe(), ended.stderr);
            verdict.fault(FaultKind::WrongCode, what);
        }
        for problem in problems(&ended.stderr, &[]) {
            verdict.fault(FaultKind::Unclear, format!("the primary: {problem}: {}", ended.stderr));
        }
        verdict.note(format!("it said: {}", ended.stderr.lines().last().unwrap_or_default()));
    }
    revive(&run.world, &mut run.parties, &mut verdict)?;
    if !ended.hung && ended.code != Some(0) {
        let again = run.world.run(kit.patience(PATIENCE))?;
        if again.hung {
            verdict.fault(FaultKind::Hang, format!("the primary, over a good connection: {}", again.stderr));
        } else if again.code == Some(0) {
            run.world.compare(&mut verdict)?;
        } else {
            let what = format!("the primary, over a good connection: {}: {}", again.describe(), again.stderr);
            verdict.fault(FaultKind::WrongCode, what);
        }
        verdict.end = CaseEnd::Refused;
    }
    run.world.panics(&mut verdict)?;
    Ok(verdict)
}

/// Restarts parties that have ended. A party may end with a clear message if it could not reach the server.
fn revive(world: &SoakWorld<'_>, parties: &mut [Process], verdict: &mut CaseResult) -> anyhow::Result<()> {
    for (member, party) in world.members()[1..].iter().zip(parties) {
        let Some(ended) = party.ended()? else { continue };
        let last = ended.stderr.lines().last().unwrap_or_default();
        verdict.note(format!("{member}: {}: {last}", ended.describe()));
        if !matches!(ended.code, Some(2 | 75)) {
            verdict.fault(FaultKind::WrongCode, format!("{member}: {}: {}", ended.describe(), ended.stderr));
        }
        for problem in problems(&ended.stderr, &[]) {
            verdict.fault(FaultKind::Unclear, format!("{member}: {problem}: {}", ended.stderr));
        }
        *party = world.party(member)?;
    }
    Ok(())
}

impl ProxiedRun<'_> {
    /// Interrupts the connection or the server at random moments until the primary has ended.
    fn interrupt(
        &mut self,
        disturbance: Disturbance,
        rng: &mut ChaCha8Rng,
        verdict: &mut CaseResult,
    ) -> anyhow::Result<()> {
        for number in 1..=rng.random_range(1..=3) {
            let until = Instant::now() + Duration::from_millis(rng.random_range(0..700));
            while Instant::now() < until {
                if self.primary.ended()?.is_some() {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let pause = Duration::from_millis(match disturbance {
                Disturbance::Interruptions(longest) if longest > 15_000 => longest,
                Disturbance::Interruptions(longest) => rng.random_range(0..longest),
                _ => rng.random_range(0..1500),
            });
            verdict.note(format!("interruption {number}, of {pause:?}"));
            if disturbance == Disturbance::Server {
                self.world.server.stop();
                std::thread::sleep(pause);
                self.world.server.resume()?;
                continue;
            }
            self.proxy.close();
            if disturbance == Disturbance::Loss {
                return Ok(());
            }
            std::thread::sleep(pause);
            self.proxy.heal();
            if pause > Duration::from_secs(15) {
                return Ok(());
            }
        }
        Ok(())
    }
}
