//! The engine `slurm`: submits the missing cells as job arrays, collects their results from the shared
//! folder, and resubmits the cells whose jobs were lost.
//!
//! It records the submitted tasks in the folder `slurm/` of the study, so that a second command, or one after
//! a crash, waits for the existing jobs. It only calls `sbatch`, `squeue` and `scontrol` (see `commands`); it
//! starts no cluster and reads no accounting. Each node needs the shared folder, with the `fet` program in
//! it. A cell may be submitted twice if `sbatch` fails after submitting. This is harmless: the second job
//! finds the lock or the report of the first.

mod commands;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fet_eval::records::RunEvent;
use serde::{Deserialize, Serialize};

use self::commands::{Job, SbatchRefusal, SlurmCallError, SlurmQueue, SlurmTask, Trouble};
use super::super::cell::Cell;
use super::super::failure::{self, CellFailure};
use super::super::report;
use super::super::view::CellProgress;
use super::{ELSEWHERE, Engine, EngineOutcome, Work, is_elsewhere};
use crate::output::{Failed, shell_quoted, write};

/// A Slurm cluster that shares this folder.
#[derive(Debug)]
pub(crate) struct SlurmEngine {
    /// Maximum number of cells that run at the same time.
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Options for `sbatch`.
    pub(crate) options: Vec<String>,
    /// Interval between checks of the queue.
    pub(crate) interval: Duration,
}

/// Number of lost jobs in a row without a finished epoch after which a cell fails.
const MOST_IDLE_JOBS: u32 = 4;

/// Maximum delay between a job leaving the queue and its report appearing: shared folders have latency.
const LAG: Duration = Duration::from_secs(3);

/// Number of answers of `squeue` without a task after which the task counts as gone. A restarting controller
/// omits tasks for a moment.
const MOST_ABSENCES: u32 = 4;

/// Submitted tasks of a study that have not ended yet, by the folders of their cells.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ledger {
    /// Maps the folder name of a cell to its task, as in `17_3` or `17_3;CLUSTER`.
    tasks: BTreeMap<String, String>,
}

/// Cell that the engine waits for.
struct Awaited<'a> {
    cell: &'a Cell,
    line: Option<CellProgress<'a>>,
    task: Option<SlurmTask>,
    /// True if a job of the cell was lost.
    was_lost: bool,
    /// Last epoch that a lost job finished.
    epoch: usize,
    /// Number of lost jobs in a row without a further finished epoch.
    idle_jobs: u32,
    /// Time of the first answer of `squeue` without the task, and the number of such answers in a row.
    absent: Option<(Instant, u32)>,
}

/// Running study on the cluster.
struct Session<'a> {
    slurm: &'a SlurmEngine,
    work: Work<'a>,
    folder: PathBuf,
    open: Vec<Awaited<'a>>,
    /// Number of cells in one array; unknown before the first submission.
    array: Option<usize>,
    /// Failures of `squeue`.
    asking: Trouble,
    /// Failures of `sbatch`.
    submitting: Trouble,
    /// Earliest time of the next submission.
    next: Instant,
    /// True if the user was informed that cells wait until other jobs end.
    told_full: bool,
}

impl Engine for SlurmEngine {
    fn run(&self, cells: &[&Cell], work: &Work<'_>) -> Result<EngineOutcome> {
        let Some(first) = cells.first() else { return Ok(EngineOutcome::Ended) };
        let mut session = Session::begin(self, first.study.join("slurm"), cells, *work);
        loop {
            session.collect()?;
            if !session.is_stopped() {
                session.submit()?;
            }
            session.save()?;
            if session.open.is_empty() {
                return Ok(EngineOutcome::Ended);
            }
            let until = Instant::now() + self.interval;
            while Instant::now() < until {
                if session.is_stopped() {
                    session.say_how_to_cancel();
                    return Ok(EngineOutcome::Interrupted);
                }
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

impl<'a> Session<'a> {
    /// Starts a session, with the tasks that an earlier command submitted.
    fn begin(slurm: &'a SlurmEngine, folder: PathBuf, cells: &[&'a Cell], work: Work<'a>) -> Self {
        let text = fs::read(folder.join(LEDGER)).unwrap_or_default();
        let ledger: Ledger = serde_json::from_slice(&text).unwrap_or_default();
        let awaited = |cell: &&'a Cell| Awaited {
            cell,
            line: None,
            task: ledger.tasks.get(&name(cell)).and_then(|task| task.parse().ok()),
            was_lost: false,
            epoch: 0,
            idle_jobs: 0,
            absent: None,
        };
        let open = cells.iter().map(awaited).collect();
        let (asking, submitting) = (Trouble::default(), Trouble::default());
        Self {
            slurm,
            work,
            folder,
            open,
            array: None,
            asking,
            submitting,
            next: Instant::now(),
            told_full: false,
        }
    }

    fn is_stopped(&self) -> bool {
        self.work.stop.load(Ordering::SeqCst)
    }

    /// Removes the cells that have ended from the list, and removes lost tasks from their cells.
    fn collect(&mut self) -> Result<()> {
        let queues = match self.queues() {
            Ok(queues) => {
                self.asking.end();
                Some(queues)
            }
            Err(error @ SlurmCallError::Missing(_)) => bail!("{error}"),
            Err(_) if self.is_stopped() => None,
            Err(SlurmCallError::Failed(problem)) => {
                let message = self.asking.add(&problem, Instant::now());
                let message = message.context("the jobs continue; the same command waits for them")?;
                message.iter().for_each(|text| self.work.view.say(text));
                None
            }
        };
        let work = self.work;
        self.open.retain_mut(|awaited| !awaited.collect(queues.as_ref(), &work));
        Ok(())
    }

    /// Returns the queue of each cluster that has tasks of this study.
    fn queues(&self) -> Result<Queues, SlurmCallError> {
        let tasks = self.open.iter().filter_map(|awaited| awaited.task.as_ref());
        let clusters: HashSet<Option<String>> = tasks.map(|task| task.job.cluster.clone()).collect();
        let user = env::var("USER").unwrap_or_default();
        clusters
            .into_iter()
            .map(|cluster| SlurmQueue::ask(cluster.as_deref(), &user).map(|queue| (cluster, queue)))
            .collect()
    }

    /// Submits the cells without a task, split into arrays within the cluster's limit. With `--jobs`, only
    /// one array is active at a time, because each array has a separate limit of running tasks.
    fn submit(&mut self) -> Result<()> {
        let mut waiting: Vec<usize> =
            (0..self.open.len()).filter(|&at| self.open[at].task.is_none()).collect();
        if waiting.is_empty() || Instant::now() < self.next {
            return Ok(());
        }
        let limited = self.slurm.jobs.is_some();
        while !(waiting.is_empty() || self.is_stopped() || (limited && self.has_tasks())) {
            let part = waiting[..self.array_size()?.min(waiting.len())].to_vec();
            match self.submit_array(&part)? {
                Ok(job) => {
                    self.submitting.end();
                    self.note(&part, &job);
                    // Save now: a crash during the next submission must not lose this array.
                    self.save()?;
                    waiting.drain(..part.len());
                }
                Err(problem) => match SbatchRefusal::classify(&problem) {
                    SbatchRefusal::ArrayTooLong if part.len() > 1 => self.array = Some(part.len() / 2),
                    SbatchRefusal::TooManyJobs if self.has_tasks() => {
                        if !std::mem::replace(&mut self.told_full, true) {
                            let rest = waiting.len();
                            self.work.view.say(&format!("{problem}; {rest} cells wait until other jobs end"));
                        }
                        self.next = Instant::now() + self.slurm.interval.max(Duration::from_secs(10));
                        return Ok(());
                    }
                    SbatchRefusal::TooManyJobs if part.len() > 1 => self.array = Some(part.len() / 2),
                    SbatchRefusal::ArrayTooLong | SbatchRefusal::Lasting => bail!(Failed(problem)),
                    SbatchRefusal::TooManyJobs | SbatchRefusal::Passing => {
                        let now = Instant::now();
                        let message = self.submitting.add(&problem, now)?;
                        message.iter().for_each(|text| self.work.view.say(text));
                        self.next = now + self.submitting.pause(now);
                        return Ok(());
                    }
                },
            }
        }
        Ok(())
    }

    fn has_tasks(&self) -> bool {
        self.open.iter().any(|awaited| awaited.task.is_some())
    }

    /// Returns the number of cells in one array.
    fn array_size(&mut self) -> Result<usize> {
        let clusters = || commands::clusters(&self.slurm.options);
        let size = self.array.unwrap_or_else(|| commands::largest_array(&clusters()));
        ensure!(
            size > 0,
            "--engine slurm: this cluster does not accept job arrays (`scontrol show config`: MaxArraySize is 0). \
             Use --engine local, or ask the administrator to allow arrays"
        );
        self.array = Some(size);
        Ok(size)
    }

    /// Submits the cells at the indices `part` as one job array. The inner error is the message of `sbatch`.
    fn submit_array(&self, part: &[usize]) -> Result<Result<Job, String>> {
        let (work, folder) = (&self.work, &self.folder);
        let mut lines = Vec::new();
        for &index in part {
            let cell = self.open[index].cell;
            prepare(cell).with_context(|| format!("cannot prepare {}", cell.folder.display()))?;
            lines.push(work.fet.shell_line(work.base, cell.variation(), &absolute(&cell.folder)?)?);
        }
        let script = folder.join(format!("array-{}.sh", fs::read_dir(folder).map_or(0, Iterator::count)));
        write(&script, &self::script(&lines, &env::current_dir()?))?;
        let mut command = Command::new("sbatch");
        let limit = self.slurm.jobs.map_or_else(String::new, |jobs| format!("%{jobs}"));
        let name = format!("fet-{}", study(self.open[part[0]].cell));
        command.args(["--parsable", &format!("--array=0-{}{limit}", part.len() - 1), "--job-name", &name]);
        // Each task writes its log next to its results.
        command.args(["--output", "/dev/null", "--error", "/dev/null"]);
        let text = match commands::answer(command.args(&self.slurm.options).arg(&script)) {
            Ok(text) => text,
            Err(error @ SlurmCallError::Missing(_)) => bail!("{error}"),
            Err(SlurmCallError::Failed(problem)) => {
                // The next attempt writes a new script.
                let _ = fs::remove_file(&script);
                return Ok(Err(problem));
            }
        };
        let Some(mut job) = commands::submitted(&text) else {
            bail!(Failed(format!(
                "`sbatch` printed no job id, so the study cannot follow its jobs; the output is {:?}. \
                 `squeue --name={name}` shows any submitted jobs",
                text.trim()
            )));
        };
        if let (None, [cluster]) = (&job.cluster, commands::clusters(&self.slurm.options).as_slice()) {
            job.cluster = Some(cluster.clone());
        }
        Ok(Ok(job))
    }

    /// Records that the cells at the indices `part` are the tasks of `job`.
    fn note(&mut self, part: &[usize], job: &Job) {
        let again = part.iter().filter(|&&index| self.open[index].was_lost).count();
        for (task, &index) in part.iter().enumerate() {
            self.open[index].task = Some(SlurmTask { job: job.clone(), index: task });
            self.open[index].absent = None;
        }
        let again = match (again, part.len()) {
            (0, _) => String::new(),
            (again, all) if again == all => ", lost before".to_string(),
            (again, _) => format!(", {again} of them lost before"),
        };
        let cells = if part.len() == 1 { "cell" } else { "cells" };
        self.work.view.say(&format!("submitted {} {cells} as job {}{again}", part.len(), job.id));
    }

    /// Writes the ledger.
    fn save(&self) -> Result<()> {
        let task = |awaited: &Awaited<'_>| Some((name(awaited.cell), awaited.task.as_ref()?.to_string()));
        let ledger = Ledger { tasks: self.open.iter().filter_map(task).collect() };
        write(&self.folder.join(LEDGER), &serde_json::to_string(&ledger).context("a ledger is plain")?)
    }

    fn say_how_to_cancel(&self) {
        let mut jobs: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
        let found: HashSet<&Job> =
            self.open.iter().filter_map(|awaited| Some(&awaited.task.as_ref()?.job)).collect();
        for job in found {
            jobs.entry(job.cluster.as_deref()).or_default().push(job.id.to_string());
        }
        let commands: Vec<String> = jobs
            .into_iter()
            .map(|(cluster, jobs)| {
                let cluster = cluster.map_or_else(String::new, |cluster| format!("--clusters={cluster} "));
                format!("`scancel {cluster}{}`", jobs.join(" "))
            })
            .collect();
        if !commands.is_empty() {
            self.work.view.say(&format!("the jobs continue; to cancel them: {}", commands.join(", ")));
        }
    }
}

/// Queues by the names of their clusters; `None` is the cluster of this machine.
type Queues = HashMap<Option<String>, SlurmQueue>;

impl<'a> Awaited<'a> {
    /// Checks the cell. Returns true if the cell has a report or has failed. Removes a lost task, so that the
    /// cell is submitted again. Without `queues`, every task counts as present.
    fn collect(&mut self, queues: Option<&Queues>, work: &Work<'a>) -> bool {
        let cell = self.cell;
        if let Some(report) = report::read(cell) {
            self.line.take().unwrap_or_else(|| work.view.begin(cell)).done(&report);
            return true;
        }
        let Some(task) = &self.task else { return false };
        let event = last_event(&cell.folder.join(EVENTS));
        if let Some(event) = &event {
            self.line.get_or_insert_with(|| work.view.begin(cell)).tell(event);
        }
        let Some(queues) = queues else { return false };
        if queues.get(&task.job.cluster).is_some_and(|queue| queue.has(task)) {
            self.absent = None;
            return false;
        }
        let code = fs::read_to_string(cell.folder.join(EXIT)).ok().and_then(|text| text.trim().parse().ok());
        let (since, answers) = self.absent.get_or_insert_with(|| (Instant::now(), 0));
        *answers += 1;
        let may_be_late = since.elapsed() < LAG || *answers < MOST_ABSENCES;
        let is_settled = code.is_some_and(|code: i32| code != 0 && !is_ended_from_outside(code));
        if is_elsewhere(cell) || (may_be_late && !is_settled) {
            return false;
        }
        let reached = event.as_ref().map_or(0, finished_epochs);
        let progressed = reached > self.epoch;
        let is_lost = match code {
            None => true,
            // A job killed after a finished epoch probably did not run out of memory, so it counts as lost
            // and not as failed.
            Some(KILLED) => progressed,
            Some(code) => is_ended_from_outside(code),
        };
        if is_lost {
            self.epoch = self.epoch.max(reached);
            self.idle_jobs = if progressed { 0 } else { self.idle_jobs + 1 };
        }
        if is_lost && self.idle_jobs < MOST_IDLE_JOBS {
            let after = if progressed { format!(" after epoch {reached}") } else { String::new() };
            work.view.say(&format!("{}: job {}_{} was lost{after}", cell.title(), task.job.id, task.index));
            (self.task, self.was_lost) = (None, true);
            return false;
        }
        let problem = match code {
            Some(code) if !is_lost => failure::explain(cell, Some(code), None),
            _ => format!(
                "was lost {MOST_IDLE_JOBS} times in a row without finishing an epoch. Check the limits of the jobs, such as time and memory"
            ),
        };
        let line = self.line.take().unwrap_or_else(|| work.view.begin(cell));
        line.failed(&CellFailure::note(cell, &problem));
        true
    }
}

/// Exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;

/// Returns true if a run with this exit code can resume: the cluster ended the run, or another process works
/// on its cell.
fn is_ended_from_outside(code: i32) -> bool {
    matches!(code, ELSEWHERE | 130 | 143)
}

/// Returns the number of finished epochs at the time of `event`.
fn finished_epochs(event: &RunEvent) -> usize {
    match event {
        RunEvent::Epoch { epoch, .. } => *epoch,
        RunEvent::Progress { epoch, .. } => epoch.saturating_sub(1),
        RunEvent::Start { .. } | RunEvent::Done { .. } => 0,
    }
}

/// Removes the files of an earlier job from a cell's folder.
fn prepare(cell: &Cell) -> std::io::Result<()> {
    fs::create_dir_all(&cell.folder)?;
    report::move_away(cell)?;
    CellFailure::forget(cell)?;
    remove(&cell.folder.join(EXIT))?;
    remove(&cell.folder.join(EVENTS))
}

/// File of the submitted tasks, in the engine's folder.
const LEDGER: &str = "jobs.json";
/// File with the exit code of a task; missing if the cluster ended the task.
const EXIT: &str = "exit";
/// File with the standard output of a task.
const EVENTS: &str = "events.jsonl";

/// Returns the batch script, whose task i runs line i.
fn script(lines: &[String], folder: &Path) -> String {
    let mut text = format!("#!/bin/sh\ncd {} || exit 2\n", shell_quoted(&folder.display().to_string()));
    text.push_str("case \"$SLURM_ARRAY_TASK_ID\" in\n");
    for (index, line) in lines.iter().enumerate() {
        text.push_str(&format!("{index}) {line} ;;\n"));
    }
    text.push_str("*) exit 2 ;;\nesac\n");
    text
}

/// Returns the last complete progress event of a task.
fn last_event(path: &Path) -> Option<RunEvent> {
    let text = fs::read(path).ok()?;
    let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(2_000)..]).into_owned();
    tail.lines().rev().find_map(|line| RunEvent::parse(line).filter(|event| event.share().is_some()))
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
    fn finds_the_last_complete_progress_event() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        assert_eq!(last_event(&path), None);
        let epoch = |n: u32| {
            format!(
                r#"{{"event":"epoch","epoch":{n},"epochs":9,"loss":1.0,"validation":0.5,"test":null,"seconds":1.0}}"#
            )
        };
        fs::write(&path, format!("{}\n{}\nnoise\n{{\"event\":\"epo", epoch(1), epoch(2))).expect("written");
        assert_eq!(last_event(&path), RunEvent::parse(&epoch(2)));
    }
}
