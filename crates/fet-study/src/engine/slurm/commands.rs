//! Slurm's commands: their calls, their output and their failures.
//!
//! Sites put banners around the output of `sbatch` and `squeue`, so every parser here skips unknown lines.
//! With a busy controller, any command may fail for a while; [`Trouble`] gives up after a time limit.

use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::output::Failed;

/// Time after which a running command is killed. `sbatch` itself retries for two minutes.
const LIMIT: Duration = Duration::from_secs(300);

/// Time after which the study gives up on a failing command.
const PATIENCE: Duration = Duration::from_secs(600);

/// Interval between two messages about a failing command.
const REMINDER: Duration = Duration::from_secs(60);

/// Number of tasks in an array if Slurm does not report a limit. Slurm's default `MaxArraySize` is one more
/// than the largest index.
const DEFAULT_ARRAY: usize = 1001;

/// Task of a job array. Its text form is `17_3`, or `17_3;CLUSTER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SlurmTask {
    pub(super) job: Job,
    pub(super) index: usize,
}

/// Job as `sbatch` names it. Its text form is `17`, or `17;CLUSTER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Job {
    pub(super) id: u64,
    /// Cluster of the job, if it is not the cluster of this machine.
    pub(super) cluster: Option<String>,
}

/// Failure of a Slurm command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SlurmCallError {
    /// This program does not exist here.
    Missing(String),
    /// The program failed. The text names the program and quotes its message.
    Failed(String),
}

/// Waiting and running tasks of one cluster.
#[derive(Debug, Default)]
pub(super) struct SlurmQueue {
    tasks: HashSet<(u64, usize)>,
    jobs: HashSet<u64>,
}

/// Repeated failures of one command.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    since: Option<Instant>,
    told: Option<Instant>,
}

impl fmt::Display for SlurmTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.job.id, self.index)?;
        self.job.cluster.iter().try_for_each(|cluster| write!(f, ";{cluster}"))
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        self.cluster.iter().try_for_each(|cluster| write!(f, ";{cluster}"))
    }
}

impl FromStr for SlurmTask {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (task, cluster) = match text.split_once(';') {
            Some((task, cluster)) => (task, Some(cluster.to_string())),
            None => (text, None),
        };
        let (id, index) = task.split_once('_').ok_or(())?;
        Ok(Self { job: Job { id: number(id).ok_or(())?, cluster }, index: number(index).ok_or(())? })
    }
}

impl FromStr for Job {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (id, cluster) = match text.split_once(';') {
            Some((id, cluster)) => (id, Some(cluster.to_string())),
            None => (text, None),
        };
        let is_name = |name: &String| !name.is_empty() && !name.contains([' ', '\t', ';']);
        if !cluster.iter().all(is_name) {
            return Err(());
        }
        Ok(Self { id: number(id).ok_or(())?, cluster })
    }
}

/// Parses a number that consists of digits only, without a sign or spaces.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Parses the submitted job from the standard output of `sbatch`: the last line that names a job counts.
pub(super) fn submitted(text: &str) -> Option<Job> {
    text.lines().rev().find_map(|line| {
        let line = line.trim();
        // Output without `--parsable`, which a site's wrapper may drop.
        if let Some(rest) = line.strip_prefix("Submitted batch job ") {
            let (id, cluster) = match rest.split_once(" on cluster ") {
                Some((id, cluster)) => (id, Some(cluster.trim().to_string())),
                None => (rest, None),
            };
            return Some(Job { id: number(id.trim())?, cluster });
        }
        line.parse().ok()
    })
}

/// Returns the maximum number of tasks in one array, from the output of `scontrol show config`.
pub(super) fn array_size(config: &str) -> Option<usize> {
    let value = |line: &str, key: &str| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.trim().to_string())
    };
    let size: usize = config.lines().find_map(|line| value(line, "MaxArraySize")?.parse().ok())?;
    let parameters = config.lines().find_map(|line| value(line, "SchedulerParameters")).unwrap_or_default();
    let tasks =
        parameters.split(',').find_map(|word| word.trim().strip_prefix("max_array_tasks=")?.parse().ok());
    Some(tasks.map_or(size, |tasks: usize| size.min(tasks)))
}

/// Returns the number of tasks that each of `clusters` allows in one array. Without names, this is the
/// cluster of this machine.
pub(super) fn largest_array(clusters: &[String]) -> usize {
    let size = |cluster: Option<&String>| {
        let mut command = Command::new("scontrol");
        command.args(cluster.map(|cluster| format!("--cluster={cluster}")));
        answer(command.args(["show", "config"]))
            .ok()
            .and_then(|config| array_size(&config))
            .unwrap_or(DEFAULT_ARRAY)
    };
    if clusters.is_empty() {
        return size(None);
    }
    clusters.iter().map(|cluster| size(Some(cluster))).min().unwrap_or(DEFAULT_ARRAY)
}

/// Returns the clusters named in the user's options for `sbatch`.
pub(super) fn clusters(options: &[String]) -> Vec<String> {
    let mut found = "";
    for (place, option) in options.iter().enumerate() {
        let long = option.strip_prefix("--clusters=").or_else(|| option.strip_prefix("--cluster="));
        let next = || options.get(place + 1).map(String::as_str);
        let value = match option.as_str() {
            "-M" | "--clusters" | "--cluster" => next(),
            _ => long.or_else(|| option.strip_prefix("--clusters ")).or_else(|| option.strip_prefix("-M")),
        };
        found = value.map_or(found, str::trim);
    }
    found.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_string).collect()
}

impl SlurmQueue {
    /// Asks `squeue` for the tasks of `user` on `cluster`; `None` is the cluster of this machine.
    pub(super) fn ask(cluster: Option<&str>, user: &str) -> Result<Self, SlurmCallError> {
        let mut command = Command::new("squeue");
        if !user.is_empty() {
            command.args(["--user", user]);
        }
        command.args(cluster.map(|cluster| format!("--clusters={cluster}")));
        // One line for each task of an array, as in `17_3 RUNNING`. Without `--states`, squeue omits tasks in
        // some states.
        let text = answer(command.args(["--noheader", "--array", "--states=all", "--format", "%i %T"]))?;
        Ok(Self::read(&text))
    }

    /// Parses the output of squeue and keeps the tasks that have not ended.
    fn read(text: &str) -> Self {
        let mut queue = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(id) = words.next() else { continue };
            if words.next().is_some_and(is_over) {
                continue;
            }
            let Some((job, tasks)) = id.split_once('_') else { continue };
            let Some(job) = number(job) else { continue };
            match (number(tasks), ranges(tasks)) {
                (Some(task), _) => drop(queue.tasks.insert((job, task))),
                (None, Some(tasks)) => queue.tasks.extend(tasks.into_iter().map(|task| (job, task))),
                // squeue truncates a long list of waiting tasks, as in `17_[1,3,...]`. Any task of the job
                // may be in the missing part.
                (None, None) if tasks.starts_with('[') => drop(queue.jobs.insert(job)),
                (None, None) => {}
            }
        }
        queue
    }

    /// Returns true if `task` waits or runs.
    pub(super) fn has(&self, task: &SlurmTask) -> bool {
        self.tasks.contains(&(task.job.id, task.index)) || self.jobs.contains(&task.job.id)
    }
}

/// Returns true if a task in this state has ended. An unknown state counts as not ended.
fn is_over(state: &str) -> bool {
    const OVER: [&str; 11] = [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    ];
    OVER.contains(&state.trim_end_matches('+'))
}

/// Parses the tasks in `[0-3,5,7-9:2%4]`. Returns `None` if the text is truncated or has another form.
fn ranges(text: &str) -> Option<Vec<usize>> {
    let text = text.strip_prefix('[')?.strip_suffix(']')?;
    let text = text.split('%').next()?;
    let mut tasks = Vec::new();
    for part in text.split(',') {
        let (range, step) =
            part.split_once(':').map_or((part, Some(1)), |(range, step)| (range, number(step)));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (number(first)?, number(last)?);
        tasks.extend((first..=last).step_by(step.filter(|step| *step > 0)?));
    }
    Some(tasks)
}

impl Trouble {
    /// Records that the command has succeeded.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Records that a command failed at `now` with `problem`. Returns a message for the user if one is due.
    ///
    /// # Errors
    ///
    /// Fails if the command has been failing for too long.
    pub(super) fn add(&mut self, problem: &str, now: Instant) -> Result<Option<String>> {
        let since = *self.since.get_or_insert(now);
        if now - since >= PATIENCE {
            bail!(Failed(format!(
                "{problem}; giving up after {} minutes of failures",
                PATIENCE.as_secs() / 60
            )));
        }
        if self.told.is_some_and(|told| now - told < REMINDER) {
            return Ok(None);
        }
        self.told = Some(now);
        Ok(Some(format!("{problem}; trying again for up to {} minutes", PATIENCE.as_secs() / 60)))
    }

    /// Returns the pause before the next attempt, which grows with the time since the first failure.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        let failing = self.since.map_or(Duration::ZERO, |since| now - since);
        failing.clamp(Duration::from_secs(1), Duration::from_secs(30))
    }
}

impl fmt::Display for SlurmCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(program) => write!(
                f,
                "--engine slurm: `{program}` is not in PATH. Run the command on a machine with Slurm's commands"
            ),
            Self::Failed(problem) => f.write_str(problem),
        }
    }
}

/// Runs a Slurm command and returns its standard output.
pub(super) fn answer(command: &mut Command) -> Result<String, SlurmCallError> {
    answer_within(command, LIMIT)
}

fn answer_within(command: &mut Command, limit: Duration) -> Result<String, SlurmCallError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |problem: String| SlurmCallError::Failed(format!("`{program}` {problem}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(SlurmCallError::Missing(program));
        }
        child => child.map_err(|error| failed(format!("could not be started: {error}")))?,
    };
    let until = Instant::now() + limit;
    let (output, message) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child, until).map_err(|error| failed(format!("could not be awaited: {error}")))?;
    let Some(status) = status else {
        return Err(failed(format!("did not end within {} s and was killed", limit.as_secs())));
    };
    // A process that the command started and left running may keep the output open.
    let text = |lines: mpsc::Receiver<Vec<u8>>| {
        let left = until.saturating_duration_since(Instant::now()).min(Duration::from_secs(5));
        lines.recv_timeout(left).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok()
    };
    if !status.success() {
        let message = text(message).unwrap_or_default();
        return Err(failed(format!("ended with {status}: {}", message.trim())));
    }
    text(output).ok_or_else(|| failed("ended, but another process keeps its output open".to_string()))
}

/// Reads a stream on a separate thread, so that the command never waits for its reader.
fn read<R: Read + Send + 'static>(stream: Option<R>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // If reading fails, the bytes read so far are used.
            let _ = stream.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Waits for a child until the time `until`, then kills it.
fn wait(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Reason for which `sbatch` refuses jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SbatchRefusal {
    /// The array has more tasks than the cluster allows in one array.
    ArrayTooLong,
    /// The user has reached the limit of jobs.
    TooManyJobs,
    /// The request is invalid, so another attempt would fail too.
    Lasting,
    /// Any other reason, such as a controller that is busy or down.
    Passing,
}

impl SbatchRefusal {
    /// Classifies a message of `sbatch`.
    pub(super) fn classify(problem: &str) -> Self {
        let problem = problem.to_lowercase();
        let has = |phrases: &[&str]| phrases.iter().any(|phrase| problem.contains(phrase));
        if has(&["invalid job array", "max_array_tasks", "maxarraysize"]) {
            Self::ArrayTooLong
        } else if has(&["maxsubmit", "submit limit", "maxjobcount", "too many jobs"]) {
            Self::TooManyJobs
        } else if has(&[
            "invalid",
            "unrecognized option",
            "unknown option",
            "not permitted",
            "requested node",
        ]) {
            Self::Lasting
        } else {
            Self::Passing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_job_among_the_lines_of_a_site() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(submitted(text).map(|job| job.to_string()).as_deref(), expected, "{text:?}");
        };
        check("17\n", Some("17"));
        check("17;other\n", Some("17;other"));
        check("---\nWelcome to 2026\n--> Verifying access...OK\n17\n", Some("17"));
        check("2026\n17;a-b\nBye, see you\n\n", Some("17;a-b"));
        check("  17  \r\n", Some("17"));
        check("Submitted batch job 17\n", Some("17"));
        check("Submitted batch job 17 on cluster other\n", Some("17;other"));
        for none in ["", "Welcome\n", "job 17\n", "17;\n", "17;a b\n", "-17\n", "+17\n", "1.5\n", "17_3\n"] {
            check(none, None);
        }
    }

    #[test]
    fn reads_the_tasks_that_have_not_ended() {
        let queue = |text: &str| {
            let queue = SlurmQueue::read(text);
            let found = (0..12).filter(|&index| queue.has(&format!("17_{index}").parse().expect("a task")));
            found.collect::<Vec<_>>()
        };
        assert_eq!(queue("17_3\n18_1\n17_5\n"), [3, 5]);
        assert_eq!(queue("Welcome to 17\nCLUSTER: other\n17_3 RUNNING\n17_x\nx_17\n"), [3]);
        let states = "17_0 PENDING\n17_1 RUNNING\n17_2 SUSPENDED\n17_3 COMPLETING\n17_4 REQUEUE_HOLD\n17_5 COMPLETED\n\
            17_6 CANCELLED+\n17_7 TIMEOUT\n17_8 NODE_FAIL\n17_9 OUT_OF_MEMORY\n17_10 CONFIGURING\n";
        assert_eq!(queue(states), [0, 1, 2, 3, 4, 10]);
        assert_eq!(queue("17_[0-2,5,7-11:2%4] PENDING"), [0, 1, 2, 5, 7, 9, 11]);
        assert_eq!(queue("17_[0-2,5,...] PENDING").len(), 12, "the list is cut off");
        assert_eq!(queue("17_[3-0:0] PENDING"), (0..12).collect::<Vec<_>>());
        assert_eq!(queue(""), Vec::<usize>::new());
    }

    #[test]
    fn reads_the_maximum_array_length() {
        let check = |text: &str, expected: Option<usize>| assert_eq!(array_size(text), expected, "{text}");
        check(
            "Configuration data as of today\nMaxArraySize            = 1001\nMaxJobCount = 10000\n",
            Some(1001),
        );
        check("MaxArraySize = 100\nSchedulerParameters = bf_continue,max_array_tasks=20\n", Some(20));
        check("MaxArraySize = 10\nSchedulerParameters = max_array_tasks=20,x\n", Some(10));
        check("MaxArraySize = 0\n", Some(0));
        check("MaxArraySizes = 4\n", None);
        check("slurm_load_ctl_conf error: Unable to contact slurm controller", None);
    }

    #[test]
    fn reads_the_clusters_among_the_users_options() {
        let check = |options: &[&str], expected: &[&str]| {
            let options: Vec<String> = options.iter().map(|word| (*word).to_string()).collect();
            assert_eq!(clusters(&options), expected, "{options:?}");
        };
        check(&[], &[]);
        check(&["--partition=gpu", "--mem=4G"], &[]);
        check(&["--clusters=other"], &["other"]);
        check(&["--clusters=a,b"], &["a", "b"]);
        check(&["-Mother", "--partition=x"], &["other"]);
        check(&["-M", "other"], &["other"]);
        check(&["--clusters", "other"], &["other"]);
    }

    #[test]
    fn reads_tasks_as_written() {
        for text in ["17_3", "17_3;other"] {
            let task: SlurmTask = text.parse().expect("a task");
            assert_eq!(task.to_string(), text);
        }
        for bad in ["", "17", "_3", "17_", "17_[1-2]", "a_1"] {
            assert!(bad.parse::<SlurmTask>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tolerates_failures_for_ten_minutes() {
        let (start, mut trouble) = (Instant::now(), Trouble::default());
        let mut at = |seconds: u64| trouble.add("`squeue` failed", start + Duration::from_secs(seconds));
        assert!(at(0).expect("goes on").is_some_and(|text| text.contains("trying again")));
        assert_eq!(at(59).expect("goes on"), None);
        assert!(at(60).expect("goes on").is_some());
        assert!(at(599).expect("goes on").is_some());
        let error = at(600).expect_err("too long");
        assert!(
            error.is::<Failed>()
                && error.to_string().contains("`squeue` failed; giving up after 10 minutes of failures")
        );
        trouble.end();
        assert!(trouble.add("again", start + Duration::from_secs(700)).expect("goes on").is_some());
    }

    #[cfg(unix)]
    #[test]
    fn kills_a_hanging_command() {
        let shell = |line: &str| answer_within(Command::new("sh").args(["-c", line]), Duration::from_secs(1));
        assert_eq!(shell("echo 17"), Ok("17\n".to_string()));
        let hangs = shell("exec sleep 60").expect_err("hangs").to_string();
        assert!(hangs.contains("`sh` did not end within 1 s"), "{hangs}");
        let fails = shell("echo no >&2; exit 3").expect_err("fails").to_string();
        assert!(fails.contains("exit status: 3: no"), "{fails}");
    }

    #[test]
    fn distinguishes_lasting_from_temporary_refusals() {
        let check = |problem: &str, expected: SbatchRefusal| {
            assert_eq!(SbatchRefusal::classify(problem), expected, "{problem}")
        };
        check(
            "sbatch: error: Batch job submission failed: Invalid job array specification",
            SbatchRefusal::ArrayTooLong,
        );
        check(
            "sbatch: error: AssocMaxSubmitJobLimit\nJob violates accounting policy",
            SbatchRefusal::TooManyJobs,
        );
        check("sbatch: error: QOSMaxSubmitJobPerUserLimit", SbatchRefusal::TooManyJobs);
        check("sbatch: error: invalid partition specified: gpu", SbatchRefusal::Lasting);
        check("sbatch: unrecognized option '--foo'", SbatchRefusal::Lasting);
        check(
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            SbatchRefusal::Passing,
        );
        check("sbatch: error: Unable to contact slurm controller (connect failure)", SbatchRefusal::Passing);
    }
}
