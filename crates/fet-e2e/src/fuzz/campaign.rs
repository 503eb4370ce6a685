//! Runs many cases of one reader in a child process, to count cases that end the process or never finish.
//!
//! The child writes the number of each case and its counts to a file before it reads the input. If the child
//! ends early, the parent reads this file and continues with the next case.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Resource, Rlimit, setrlimit};

use super::{FuzzReader, ReaderOutcome, unclear};
use crate::case::{CaseFault, FaultKind};

/// Maximum time of a case. A longer case is a hang.
const HANG: Duration = Duration::from_secs(20);
/// Time above which a case counts as slow.
const SLOW: Duration = Duration::from_secs(1);
/// Memory limit in bytes, more than any reader needs for inputs of this size.
const MOST_MEMORY: u64 = 4 << 30;

/// Results of a range of cases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CampaignCounts {
    /// Number of inputs without a fault that were read correctly.
    pub accepted: u64,
    /// Number of inputs without a fault that were refused with a message.
    pub refused: u64,
    /// Faults, each with the number of its case.
    pub faults: Vec<(u64, CaseFault)>,
}

/// Range of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseRange {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the first case.
    pub from: u64,
    /// Number after the last case.
    pub to: u64,
}

/// Runs one case in this process. Returns its outcome and fault.
pub fn run_case(reader: &FuzzReader, input: &[u8]) -> (Option<ReaderOutcome>, Option<CaseFault>) {
    let start = Instant::now();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (reader.read)(input)));
    let took = start.elapsed();
    let fault = match &outcome {
        Err(payload) => Some(CaseFault::new(FaultKind::Panic, words(payload.as_ref()))),
        Ok(ReaderOutcome::Wrong(how)) => Some(CaseFault::new(FaultKind::WrongAccept, how.clone())),
        Ok(_) if took > SLOW => Some(CaseFault::new(FaultKind::Slow, format!("{:.1} s", took.as_secs_f64()))),
        Ok(ReaderOutcome::Refused(message)) => {
            unclear(message).map(|part| CaseFault::new(FaultKind::Unclear, format!("{part:?} in {message}")))
        }
        Ok(ReaderOutcome::Accepted) => None,
    };
    (outcome.ok(), fault)
}

fn words(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_string())
}

/// Runs the child process: reads the cases one after another and prints one line per fault.
pub fn child(
    reader: &FuzzReader,
    range: CaseRange,
    progress: &Path,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<()> {
    let most = Some(MOST_MEMORY);
    setrlimit(Resource::As, Rlimit { current: most, maximum: most }).context("cannot set a memory limit")?;
    panic::set_hook(Box::new(|_| ()));
    let progress = File::options().write(true).open(progress)?;
    let beginnings = reader.initial_inputs();
    let (mut accepted, mut refused) = (0u64, 0u64);
    for number in range.from..range.to {
        progress.write_all_at(&[number, accepted, refused].map(u64::to_le_bytes).concat(), 0)?;
        let input = reader.case(&beginnings, range.seed, number);
        let (outcome, fault) = run_case(reader, &input);
        match (outcome, fault) {
            (_, Some(CaseFault { kind, what })) => {
                let what: String = what.escape_debug().take(300).collect();
                say(format!("{number} {kind:?} {what}"));
            }
            (Some(ReaderOutcome::Accepted), None) => accepted += 1,
            _ => refused += 1,
        }
    }
    progress.write_all_at(&[range.to, accepted, refused].map(u64::to_le_bytes).concat(), 0)?;
    Ok(())
}

/// Runs the parent process, which starts children for the cases. Stops early after `most` faults.
pub fn run(reader: &FuzzReader, range: CaseRange, most: usize) -> anyhow::Result<CampaignCounts> {
    let folder = tempfile::tempdir().context("cannot create a folder for progress")?;
    let progress = folder.path().join("progress");
    let mut counts = CampaignCounts::default();
    let mut next = range.from;
    while next < range.to && counts.faults.len() < most {
        std::fs::write(&progress, [0; 24])?;
        let numbers = [next, range.to, range.seed].map(|number| number.to_string());
        let mut child = Command::new(std::env::current_exe()?)
            .args(["fuzz", "child", reader.name])
            .args(&numbers)
            .arg(&progress)
            .env("RAYON_NUM_THREADS", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("no child can be started")?;
        let out = child.stdout.take().context("it is piped")?;
        let lines =
            std::thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).collect::<Vec<_>>());
        let file = File::open(&progress)?;
        let mut moved = (Instant::now(), u64::MAX);
        let fault = loop {
            if let Some(status) = child.try_wait()? {
                break (!status.success()).then(|| CaseFault::new(FaultKind::Abort, status.to_string()));
            }
            let [number, ..] = read(&file)?;
            if number != moved.1 {
                moved = (Instant::now(), number);
            } else if moved.0.elapsed() > HANG {
                child.kill()?;
                child.wait()?;
                break Some(CaseFault::new(FaultKind::Hang, format!("more than {} s", HANG.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        for line in lines.join().unwrap_or_default() {
            let mut parts = line.splitn(3, ' ');
            let parts = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
            let kind = FaultKind::ALL.into_iter().find(|kind| format!("{kind:?}") == parts[1]);
            if let (Ok(number), Some(kind)) = (parts[0].parse(), kind) {
                counts.faults.push((number, CaseFault::new(kind, parts[2])));
            }
        }
        let [number, accepted, refused] = read(&file)?;
        counts.accepted += accepted;
        counts.refused += refused;
        next = match fault {
            Some(fault) => {
                counts.faults.push((number, fault));
                number.max(next) + 1
            }
            None => number,
        };
    }
    Ok(counts)
}

fn read(file: &File) -> anyhow::Result<[u64; 3]> {
    let mut bytes = [0; 24];
    file.read_exact_at(&mut bytes, 0)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[8 * at + i]));
    Ok([word(0), word(1), word(2)])
}
