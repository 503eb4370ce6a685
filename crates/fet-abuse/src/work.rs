//! Runs the cases one after another, prints failing cases, and counts.

use std::time::Instant;

use anyhow::{Context, ensure};
use fet_testing::tally::Tally;

use crate::Arguments;
use crate::areas;
use crate::base::Bases;
use crate::case::{Case, Step};
use crate::child::{Ended, Place};
use crate::judge::{Fault, Kind, judge};
use crate::snapshot::Snapshot;

/// Number of cases of each area in the short form.
const SHORT: usize = 12;
/// Maximum number of printed characters of a file or a message.
const SHOWN: usize = 400;

/// Runs the chosen cases.
pub(crate) fn work(arguments: &Arguments) -> anyhow::Result<Tally> {
    let fet = arguments.fet.canonicalize().with_context(|| format!("{}", arguments.fet.display()))?;
    let root = tempfile::Builder::new()
        .prefix("fet-abuse-")
        .tempdir()
        .context("cannot create a temporary folder")?;
    let logs = root.path().join("logs");
    std::fs::create_dir(&logs)?;
    let bases = Bases::new(&fet, root.path(), &logs)?;
    let mut cases = areas::all(&fet, &bases, &logs, arguments.seed)?;
    if let Some(only) = &arguments.only {
        cases.retain(|case| case.title().contains(only.as_str()));
    }
    if arguments.short {
        cases = shortened(cases);
    }
    ensure!(!cases.is_empty(), "no case matches --only");
    let start = Instant::now();
    let mut tally = Tally::new(Kind::ALL.map(Kind::name));
    let mut failing = 0;
    for case in &cases {
        let folder = root.path().join("case");
        bases.copy(case.base, &folder)?;
        let place = Place { fet: &fet, folder: &folder, logs: &logs, patience: arguments.patience };
        let began = Instant::now();
        let found = run(&place, case).with_context(|| case.title())?;
        let faults: Vec<Fault> = found.iter().flat_map(|(_, _, faults)| faults.clone()).collect();
        tally.add(case.area, None, faults.iter().map(|fault| fault.kind.name()));
        if arguments.verbose {
            let last = found.last().map(|(_, ended, _)| format!("{:?} {:?}", ended.code, ended.signal));
            println!(
                "{:6.2} s  {}: {}",
                began.elapsed().as_secs_f64(),
                case.title(),
                last.unwrap_or_default()
            );
        }
        if !faults.is_empty() {
            failing += 1;
            show(case, &found, arguments);
        }
        if arguments.keep && !faults.is_empty() {
            let kept = std::env::temp_dir().join(format!("fet-abuse-kept-{}-{failing}", std::process::id()));
            std::fs::rename(&folder, &kept)?;
            println!("    kept: {}\n", kept.display());
        } else {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("{}: {}", case.title(), folder.display()))?;
        }
    }
    println!("{} cases in {:.1} s, seed {}", cases.len(), start.elapsed().as_secs_f64(), arguments.seed);
    Ok(tally)
}

/// Returns some cases of each area, evenly chosen.
fn shortened(cases: Vec<Case>) -> Vec<Case> {
    let mut areas: Vec<Vec<Case>> = Vec::new();
    for case in cases.into_iter().filter(|case| !case.slow) {
        match areas.last_mut().filter(|area| area[0].area == case.area) {
            Some(area) => area.push(case),
            None => areas.push(vec![case]),
        }
    }
    let chosen = |area: Vec<Case>| {
        let (count, wanted) = (area.len(), SHORT.min(area.len()));
        let places: Vec<usize> = (0..wanted).map(|at| at * count / wanted).collect();
        let all = area.into_iter().enumerate();
        all.filter(move |(at, _)| places.contains(at)).map(|(_, case)| case)
    };
    areas.into_iter().flat_map(chosen).collect()
}

type Found<'a> = (&'a Step, Ended, Vec<Fault>);

fn run<'a>(place: &Place<'_>, case: &'a Case) -> anyhow::Result<Vec<Found<'a>>> {
    for (name, bytes) in &case.files {
        std::fs::write(place.folder.join(name), bytes)?;
    }
    let mut found: Vec<Found<'_>> = Vec::new();
    for step in &case.steps {
        place.shell(&step.prepare)?;
        let before = Snapshot::of(place.folder)?;
        let ended = place.run(step)?;
        let after = Snapshot::of(place.folder)?;
        let mut faults = judge(step, &ended, &before, &after);
        if ended.code == Some(0) && !place.shell(&step.check)? {
            let what = format!("accepted, but this fails: {}", step.check);
            faults.push(Fault { kind: Kind::WrongAccept, what });
        }
        let stop = faults.iter().any(|fault| fault.kind != Kind::Unclear);
        found.push((step, ended, faults));
        if stop {
            break;
        }
    }
    if let (Some((one, other)), Some((_, ended, faults))) = (case.same, found.last_mut()) {
        let read = |name: &str| std::fs::read(place.folder.join(name)).ok();
        if ended.code == Some(0) && (read(one).is_none() || read(one) != read(other)) {
            faults.push(Fault { kind: Kind::WrongAccept, what: format!("{one} differs from {other}") });
        }
    }
    place.shell(&case.cleanup)?;
    Ok(found)
}

/// Prints a failing case so that it can be repeated.
fn show(case: &Case, found: &[Found<'_>], arguments: &Arguments) {
    println!("FAIL {}", case.title());
    for (name, bytes) in &case.files {
        println!("    file {name} ({} bytes): {}", bytes.len(), excerpt(bytes));
    }
    for (step, ended, faults) in found {
        for line in [&step.prepare].into_iter().filter(|line| !line.is_empty()) {
            println!("    $ {}", line.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\""));
        }
        println!("    $ {} fet {}", step.before, excerpt(step.command.as_bytes()));
        if let Some(input) = &step.input {
            println!("    standard input ({} bytes): {}", input.len(), excerpt(input));
        }
        for fault in faults {
            println!("    {}: {}", fault.kind.name(), fault.what.escape_debug());
        }
        if !faults.is_empty() {
            println!("    standard error: {}", excerpt(ended.stderr.as_bytes()));
        }
    }
    println!(
        "    again: fet-abuse {} --seed {} --keep --only {}\n",
        arguments.fet.display(),
        arguments.seed,
        crate::case::quoted(&case.title())
    );
}

fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
    let more = if end < text.len() { " ..." } else { "" };
    format!(
        "{}{more}",
        text[..end].trim_end().escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
    )
}
