//! Plays the script of a case, and describes how to repeat a failing script.

use std::path::{Path, PathBuf};

use super::base::Bases;
use super::judge::judge;
use super::sandbox::Sandbox;
use super::script::{Script, Step};
use super::snapshot::Snapshot;
use crate::case::{Case, CaseEnd, CaseFault, CaseResult, FaultKind};
use crate::process::Ended;

/// Number of cases of each area in the short form.
const SHORT: usize = 12;
/// Maximum number of printed characters of a file or a message.
const SHOWN: usize = 400;

/// Shared resources of all cases: the program, the folders that cases copy, and a folder for output.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) fet: PathBuf,
    pub(super) bases: Bases,
    pub(super) logs: PathBuf,
    /// Factor on the time limits, which assume an idle machine.
    pub(super) patience: u32,
}

/// Converts the scripts to cases. The short form has some cases of each area, evenly chosen.
pub(crate) fn cases(scripts: Vec<Script>) -> Vec<Case<Shared>> {
    let quick = |area: &str| scripts.iter().filter(|script| script.area == area && !script.slow).count();
    let counts: Vec<usize> = scripts.iter().map(|script| quick(script.area)).collect();
    let mut previous = ("", 0);
    let case = |(script, count): (Script, usize)| {
        if previous.0 != script.area {
            previous = (script.area, 0);
        }
        let at = previous.1;
        previous.1 += usize::from(!script.slow);
        let wanted = SHORT.min(count);
        let short = !script.slow && (0..wanted).any(|place| place * count / wanted == at);
        Case::new(script.area, script.name.clone(), move |shared, folder, _| play(shared, folder, &script))
            .short(short)
    };
    scripts.into_iter().zip(counts).map(case).collect()
}

type Found<'a> = (&'a Step, Ended, Vec<CaseFault>);

fn play(shared: &Shared, folder: &Path, script: &Script) -> anyhow::Result<CaseResult> {
    shared.bases.copy(script.base, folder)?;
    let place = Sandbox { fet: &shared.fet, folder, logs: &shared.logs, patience: shared.patience };
    let found = steps(&place, script)?;
    let mut verdict = CaseResult::new(CaseEnd::Expected);
    verdict.faults = found.iter().flat_map(|(_, _, faults)| faults.clone()).collect();
    match (verdict.faults.is_empty(), found.last()) {
        (true, Some((_, ended, _))) => verdict.note(ended.describe()),
        _ => verdict.notes = described(script, &found),
    }
    Ok(verdict)
}

fn steps<'a>(place: &Sandbox<'_>, script: &'a Script) -> anyhow::Result<Vec<Found<'a>>> {
    for (name, bytes) in &script.files {
        std::fs::write(place.folder.join(name), bytes)?;
    }
    let mut found: Vec<Found<'_>> = Vec::new();
    for step in &script.steps {
        place.shell(&step.prepare)?;
        let before = Snapshot::take(place.folder)?;
        let ended = place.run(step)?;
        let after = Snapshot::take(place.folder)?;
        let mut faults = judge(step, &ended, &before, &after);
        if ended.code == Some(0) && !place.shell(&step.check)? {
            let what = format!("accepted, but this fails: {}", step.check);
            faults.push(CaseFault::new(FaultKind::WrongAccept, what));
        }
        let stop = faults.iter().any(|fault| fault.kind != FaultKind::Unclear);
        found.push((step, ended, faults));
        if stop {
            break;
        }
    }
    if let (Some((one, other)), Some((_, ended, faults))) = (script.same, found.last_mut()) {
        let read = |name: &str| std::fs::read(place.folder.join(name)).ok();
        if ended.code == Some(0) && (read(one).is_none() || read(one) != read(other)) {
            faults.push(CaseFault::new(FaultKind::WrongAccept, format!("{one} differs from {other}")));
        }
    }
    place.shell(&script.cleanup)?;
    Ok(found)
}

/// Describes how to repeat a failing script.
fn described(script: &Script, found: &[Found<'_>]) -> Vec<String> {
    let file = |(name, bytes): &(String, Vec<u8>)| {
        format!("file {name} ({} bytes): {}", bytes.len(), excerpt(bytes))
    };
    let mut lines: Vec<String> = script.files.iter().map(file).collect();
    for (step, ended, faults) in found {
        if !step.prepare.is_empty() {
            lines.push(format!("$ {}", escaped(&step.prepare)));
        }
        lines.push(format!("$ {} fet {}", step.before, excerpt(step.command.as_bytes())));
        if let Some(input) = &step.input {
            lines.push(format!("standard input ({} bytes): {}", input.len(), excerpt(input)));
        }
        if !faults.is_empty() {
            lines.push(format!("standard error: {}", excerpt(ended.stderr.as_bytes())));
        }
    }
    lines
}

fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
    let more = if end < text.len() { " ..." } else { "" };
    format!("{}{more}", escaped(text[..end].trim_end()))
}

/// Escapes control characters, but no quotes.
fn escaped(text: &str) -> String {
    text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
}
