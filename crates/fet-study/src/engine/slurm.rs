//! The engine `slurm`: submits the missing cells as a job array, collects them from the shared folder, and submits
//! again the cells whose jobs were lost.
//!
//! It keeps what it submitted in `slurm/` of the study's folder, so that a second command, or one after a crash, waits
//! for the existing jobs instead of duplicating them. It starts no cluster and reads no accounting: `sbatch` and
//! `squeue` are all it calls. A node needs nothing but the shared folder and the `fet` program on it.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fet_records::Event;
use serde::{Deserialize, Serialize};

use super::super::cell::Cell;
use super::super::failure::{self, Failure};
use super::super::report;
use super::super::view::Line;
use super::{ELSEWHERE, Engine, Outcome, Work, is_elsewhere};
use crate::output::{Failed, shell_quoted, write};

/// A Slurm cluster that shares this folder.
#[derive(Debug)]
pub(crate) struct Slurm {
    /// Cells at a time.
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Passed on to `sbatch`.
    pub(crate) options: Vec<String>,
    /// The interval between checks of the queue.
    pub(crate) interval: Duration,
}

/// A cell fails after its job is lost this many times.
const MOST_SUBMISSIONS: u32 = 4;

/// How long a report may take to appear after its job has left the queue: shared folders have latency.
const LAG: Duration = Duration::from_secs(3);

/// The submitted jobs of a study that have not ended yet: the folder of each cell and its task.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ledger {
    /// Folder name of a cell -> task, as in `17_3`.
    tasks: BTreeMap<String, String>,
}

/// A cell that this engine waits for.
struct Awaited<'a> {
    cell: &'a Cell,
    line: Option<Line<'a>>,
    task: Option<String>,
    submissions: u32,
    gone_since: Option<Instant>,
}

impl Engine for Slurm {
    fn run(&self, cells: &[&Cell], work: &Work<'_>) -> Result<Outcome> {
        let Some(first) = cells.first() else { return Ok(Outcome::Ended) };
        let folder = first.study.join("slurm");
        let ledger_path = folder.join("jobs.json");
        let text = fs::read(&ledger_path).unwrap_or_default();
        let mut ledger: Ledger = serde_json::from_slice(&text).unwrap_or_default();
        let known = |cell: &Cell| ledger.tasks.get(&name(cell)).cloned();
        let mut open: Vec<Awaited<'_>> = cells
            .iter()
            .map(|cell| Awaited { cell, line: None, task: known(cell), submissions: 0, gone_since: None })
            .collect();
        loop {
            let alive = self.queue(&open)?;
            open.retain_mut(|awaited| !awaited.collect(&alive, work));
            let lost: Vec<usize> = (0..open.len()).filter(|&index| open[index].task.is_none()).collect();
            if !lost.is_empty() && !work.stop.load(Ordering::SeqCst) {
                self.submit(&mut open, &lost, &folder, work)?;
            }
            ledger.tasks =
                open.iter().filter_map(|awaited| Some((name(awaited.cell), awaited.task.clone()?))).collect();
            write(&ledger_path, &serde_json::to_string(&ledger).context("a ledger is plain")?)?;
            if open.is_empty() {
                return Ok(Outcome::Ended);
            }
            let until = Instant::now() + self.interval;
            while Instant::now() < until {
                if work.stop.load(Ordering::SeqCst) {
                    let jobs: HashSet<&str> =
                        ledger.tasks.values().filter_map(|task| task.split('_').next()).collect();
                    let jobs: Vec<&str> = jobs.into_iter().collect();
                    work.view.say(&format!("the jobs go on; `scancel {}` ends them", jobs.join(" ")));
                    return Ok(Outcome::Interrupted);
                }
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

impl Slurm {
    /// The tasks that wait or run.
    fn queue(&self, open: &[Awaited<'_>]) -> Result<HashSet<String>> {
        if open.iter().all(|awaited| awaited.task.is_none()) {
            return Ok(HashSet::new());
        }
        let mut command = Command::new("squeue");
        let user = env::var("USER").unwrap_or_default();
        if !user.is_empty() {
            command.args(["--user", &user]);
        }
        // One line for each task of an array, as in `17_3`.
        let text = answer(command.args(["--noheader", "--array", "--format", "%i"]))?;
        Ok(text.lines().map(|line| line.trim().to_string()).collect())
    }

    /// Submits the cells at `lost` as one job array.
    fn submit(&self, open: &mut [Awaited<'_>], lost: &[usize], folder: &Path, work: &Work<'_>) -> Result<()> {
        let mut lines = Vec::new();
        for &index in lost {
            let cell = open[index].cell;
            let prepare = || -> std::io::Result<()> {
                fs::create_dir_all(&cell.folder)?;
                report::move_away(cell)?;
                Failure::forget(cell)?;
                remove(&cell.folder.join(EXIT))?;
                remove(&cell.folder.join(EVENTS))
            };
            prepare().with_context(|| format!("cannot prepare {}", cell.folder.display()))?;
            lines.push(work.fet.shell_line(work.base, cell.variation(), &absolute(&cell.folder)?)?);
        }
        let script = folder.join(format!("array-{}.sh", fs::read_dir(folder).map_or(0, Iterator::count)));
        write(&script, &self::script(&lines, &env::current_dir()?))?;
        let mut command = Command::new("sbatch");
        let limit = self.jobs.map_or_else(String::new, |jobs| format!("%{jobs}"));
        command.args(["--parsable", &format!("--array=0-{}{limit}", lost.len() - 1)]);
        command.args(["--job-name", &format!("fet-{}", study(open[lost[0]].cell))]);
        // Each task writes its own log beside its results.
        command.args(["--output", "/dev/null", "--error", "/dev/null"]);
        let job = answer(command.args(&self.options).arg(&script))?;
        // `ID` or `ID;CLUSTER`.
        let job = job.trim().split(';').next().unwrap_or_default().to_string();
        let again = lost.iter().filter(|&&index| open[index].submissions > 0).count();
        for (task, &index) in lost.iter().enumerate() {
            open[index].task = Some(format!("{job}_{task}"));
            open[index].submissions += 1;
            open[index].gone_since = None;
        }
        let again = match (again, lost.len()) {
            (0, _) => String::new(),
            (again, all) if again == all => ", lost before".to_string(),
            (again, _) => format!(", {again} of them lost before"),
        };
        let cells = if lost.len() == 1 { "cell" } else { "cells" };
        work.view.say(&format!("submitted {} {cells} as job {job}{again}", lost.len()));
        Ok(())
    }
}

impl<'a> Awaited<'a> {
    /// Checks the cell; whether waiting for it is over. A lost task is removed.
    fn collect(&mut self, alive: &HashSet<String>, work: &Work<'a>) -> bool {
        let cell = self.cell;
        if let Some(report) = report::of(cell) {
            self.line.take().unwrap_or_else(|| work.view.begin(cell)).done(&report);
            return true;
        }
        let Some(task) = &self.task else { return false };
        let event = last_event(&cell.folder.join(EVENTS));
        if let Some(event) = event {
            self.line.get_or_insert_with(|| work.view.begin(cell)).tell(&event);
        }
        if alive.contains(task) {
            self.gone_since = None;
            return false;
        }
        let code = fs::read_to_string(cell.folder.join(EXIT)).ok().and_then(|text| text.trim().parse().ok());
        let is_settled = code.is_some_and(|code: i32| code != 0 && code != ELSEWHERE);
        let waited = self.gone_since.get_or_insert_with(Instant::now).elapsed();
        if is_elsewhere(cell) || (waited < LAG && !is_settled) {
            return false;
        }
        let problem = match code {
            // Ended by the cluster, or another process was at it and left it: to be submitted again.
            None | Some(ELSEWHERE | 130 | 143) if self.submissions < MOST_SUBMISSIONS => {
                let task = self.task.take().unwrap_or_default();
                work.view.say(&format!("{}: job {task} was lost", cell.title()));
                return false;
            }
            None => format!("was lost {MOST_SUBMISSIONS} times: something ends its jobs"),
            Some(code) => failure::explain(cell, Some(code), None),
        };
        let line = self.line.take().unwrap_or_else(|| work.view.begin(cell));
        line.failed(&Failure::note(cell, &problem));
        true
    }
}

/// The exit code of a task; missing if the cluster ended it.
const EXIT: &str = "exit";
/// The standard output of a task.
const EVENTS: &str = "events.jsonl";

/// The batch script: task i runs line i.
fn script(lines: &[String], folder: &Path) -> String {
    let mut text = format!("#!/bin/sh\ncd {} || exit 2\n", shell_quoted(&folder.display().to_string()));
    text.push_str("case \"$SLURM_ARRAY_TASK_ID\" in\n");
    for (index, line) in lines.iter().enumerate() {
        text.push_str(&format!("{index}) {line} ;;\n"));
    }
    text.push_str("*) exit 2 ;;\nesac\n");
    text
}

/// Calls a program of Slurm and returns its standard output.
fn answer(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.stdin(Stdio::null()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("--engine slurm: there is no `{program}` in PATH; run this where Slurm's commands are")
        }
        output => output.with_context(|| format!("cannot run {program}"))?,
    };
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        bail!(Failed(format!("`{program}` ended with {}: {message}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The last complete event of a task.
fn last_event(path: &Path) -> Option<Event> {
    let text = fs::read(path).ok()?;
    let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(2_000)..]).into_owned();
    tail.lines().rev().find_map(|line| Event::parse(line).filter(|event| event.share().is_some()))
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot resolve {}", path.display()))
}

fn name(cell: &Cell) -> String {
    cell.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn study(cell: &Cell) -> String {
    cell.study.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_runs_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it's/array.sh");
        let home = path.parent().expect("a folder");
        write(&path, &script(&["pwd >a".to_string(), "echo 1 >b".to_string()], home)).expect("written");
        let run = |task: &str| {
            Command::new("sh").arg(&path).env("SLURM_ARRAY_TASK_ID", task).status().expect("ran")
        };
        assert!(run("0").success() && home.join("a").exists() && !home.join("b").exists());
        assert!(run("1").success() && home.join("b").exists());
        assert_eq!(run("2").code(), Some(2));
    }

    #[test]
    fn the_last_event_is_the_last_whole_line_that_tells_progress() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        assert_eq!(last_event(&path), None);
        let epoch = |n: u32| {
            format!(
                r#"{{"event":"epoch","epoch":{n},"epochs":9,"loss":1.0,"validation":0.5,"test":null,"seconds":1.0}}"#
            )
        };
        fs::write(&path, format!("{}\n{}\nnoise\n{{\"event\":\"epo", epoch(1), epoch(2))).expect("written");
        assert_eq!(last_event(&path), Event::parse(&epoch(2)));
    }
}
