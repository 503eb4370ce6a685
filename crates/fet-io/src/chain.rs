//! Hash chain: a file of JSON lines that shows if a line was removed, changed, inserted or moved.
//!
//! A line is the caller's JSON object with three more members: `number` at its start, counted from 1, and `previous` and `hash` at its
//! end. `hash` is SHA-256 of the line without its last member, that is `{..., "previous":"..."}`; `previous` is the `hash` of the line
//! before, or 64 zeros. A second file, with the ending `head`, holds the number and the hash of the last line that is surely on the
//! disk, so that lines that were cut off at the end are missed too. Only a hash that somebody noted elsewhere proves that the
//! whole chain was not written again.
//!
//! Several processes may append: each append takes a lock and reads the lines that others wrote.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::atomic::sync_folder;
use crate::{hex, sha256};

/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;
/// `previous` of the first line.
const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const NUMBER: &str = "{\"number\":";
const PREVIOUS: &str = ",\"previous\":\"";
const HASH: &str = "\",\"hash\":\"";
const END: &str = "\"}";

/// A line's place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Number of the line, from 1; 0 for an empty chain.
    pub number: u64,
    /// Hash of the line.
    pub hash: String,
}

/// Fault of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A line has other content than when it was written.
    #[error("line {0} was changed")]
    Changed(u64),
    /// A line was added between others, or a line was copied.
    #[error("line {0} was inserted")]
    Inserted(u64),
    /// Lines are missing before this line.
    #[error("{count} lines were removed before line {line}")]
    Removed {
        /// Line of the file, from 1.
        line: u64,
        /// Number of missing lines.
        count: u64,
    },
    /// A line was moved.
    #[error("line {0} is not in its place: lines were reordered")]
    Reordered(u64),
    /// Lines are missing at the end.
    #[error("lines were removed at the end: the file ends with line {end}, and line {head} was written")]
    CutOff {
        /// Number of lines.
        end: u64,
        /// Number of the last line that was surely written.
        head: u64,
    },
    /// The line that the head names has another hash: the lines up to it were written again.
    #[error("line {0} was changed, and the hashes of the lines up to it were computed again")]
    Rewritten(u64),
    /// The file with the head is missing or unreadable.
    #[error("the file {0} is missing or was changed: it names the last line")]
    NoHead(String),
}

/// Error of a chain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The chain is not intact.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A chain that the caller appends to.
#[derive(Debug)]
pub struct Chain {
    path: PathBuf,
    file: File,
    lock: File,
    end: Position,
}

/// End of the lines that were read.
#[derive(Debug, Clone)]
struct Position {
    number: u64,
    hash: String,
    /// Length in bytes.
    length: u64,
}

impl Position {
    fn start() -> Self {
        Self { number: 0, hash: FIRST.to_string(), length: 0 }
    }

    fn head(&self) -> Head {
        Head { number: self.number, hash: self.hash.clone() }
    }
}

/// Result of reading an intact chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The last line.
    pub head: Head,
    /// True if the file ends with a part of a line, which a killed process left.
    pub torn: bool,
}

impl Chain {
    /// Opens the chain at `path` and checks all its lines; a missing file counts as empty. Returns the chain and the number of bytes
    /// of an incomplete last line, which the function removes.
    pub fn open(path: &Path) -> Result<(Self, Option<u64>), ChainError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock =
            File::options().write(true).create(true).truncate(false).open(path.with_extension("lock"))?;
        let held = Held::take(&lock)?;
        let is_new = !path.exists();
        let file = File::options().append(true).create(true).open(path)?;
        if is_new {
            sync_folder(path)?;
        }
        let found = verify_files(path, &mut |_, _| ())?;
        let torn = found.torn.then(|| cut(&file, found.length)).transpose()?;
        drop(held);
        let end = Position { number: found.head.number, hash: found.head.hash, length: found.length };
        Ok((Self { path: path.to_path_buf(), file, lock, end }, torn))
    }

    /// Returns the last line that this process knows.
    pub fn head(&self) -> Head {
        self.end.head()
    }

    /// Appends an object. A `durable` line and all lines before it are on the disk afterwards; another line survives the process,
    /// but not the machine.
    ///
    /// # Errors
    /// The files cannot be written, or another process damaged the chain. The line is then not in the chain,
    /// unless only the head could not be written.
    ///
    /// # Panics
    /// If `object` is not a JSON object in one line with at least one member.
    pub fn append(&mut self, object: &str, durable: bool) -> Result<Head, ChainError> {
        let members = object
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .filter(|members| !members.is_empty() && !members.contains('\n'));
        let members = members.expect("the caller makes an object with members");
        let lock = self.lock.try_clone()?;
        let _held = Held::take(&lock)?;
        self.follow_others()?;
        let number = self.end.number + 1;
        let content = format!("{NUMBER}{number},{members}{PREVIOUS}{}", self.end.hash);
        let hash = hash_of(&content);
        let line = format!("{content}{HASH}{hash}{END}\n");
        let written = self.file.write_all(line.as_bytes()).and_then(|()| match durable {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        if let Err(error) = written {
            // A part of the line, or a line whose sync failed, must not stay: the caller repeats it.
            self.file.set_len(self.end.length)?;
            return Err(error.into());
        }
        self.end = Position { number, hash, length: self.end.length + line.len() as u64 };
        if durable {
            write_head(&self.path, &self.end.head())?;
        }
        Ok(self.end.head())
    }

    /// Reads the lines that other processes wrote since the last append.
    fn follow_others(&mut self) -> Result<(), ChainError> {
        let length = self.file.metadata()?.len();
        if length == self.end.length {
            return Ok(());
        }
        let head = read_head(&self.path)?.map_or(self.end.number, |head| head.number);
        if length < self.end.length {
            return Err(Fault::CutOff { end: 0, head: head.max(self.end.number) }.into());
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.end.length))?;
        let (end, torn) = match read_on(BufReader::new(file), self.end.clone(), &mut |_, _| ())? {
            Ok(found) => found,
            Err(bad) => return Err(classify(&self.path, bad)?.into()),
        };
        if torn {
            cut(&self.file, end.length)?;
        }
        self.end = end;
        Ok(())
    }
}

/// Checks the chain at `path` and passes each line's hash and text to `visit`.
///
/// # Errors
/// The chain has a fault, which names the first bad line, or cannot be read.
pub fn verify(path: &Path, visit: &mut dyn FnMut(&Head, &str)) -> Result<Verified, ChainError> {
    // The lock is missing next to a copy of the files, and unnecessary there.
    let lock = File::options().write(true).open(path.with_extension("lock")).ok();
    let _held = lock.as_ref().map(Held::take).transpose()?;
    let Found { head, torn, .. } = verify_files(path, visit)?;
    Ok(Verified { head, torn })
}

struct Found {
    head: Head,
    length: u64,
    torn: bool,
}

fn verify_files(path: &Path, visit: &mut dyn FnMut(&Head, &str)) -> Result<Found, ChainError> {
    let named = read_head(path)?;
    let mut named_hash = None;
    let mut look = |head: &Head, line: &str| {
        if named.as_ref().is_some_and(|named| named.number == head.number) {
            named_hash = Some(head.hash.clone());
        }
        visit(head, line);
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        file => Some(file?),
    };
    let read =
        file.map(|file| read_on(BufReader::with_capacity(1 << 16, file), Position::start(), &mut look));
    let (end, torn) = match read.transpose()?.unwrap_or(Ok((Position::start(), false))) {
        Ok(found) => found,
        Err(bad) => return Err(classify(path, bad)?.into()),
    };
    match &named {
        // A process that was killed after its first line did not yet write the head.
        None if end.number > 1 => {
            let name = path.with_extension("head");
            return Err(Fault::NoHead(name.display().to_string()).into());
        }
        None => {}
        Some(head) if head.number > end.number => {
            return Err(Fault::CutOff { end: end.number, head: head.number }.into());
        }
        Some(head) if named_hash.as_ref() != Some(&head.hash) => {
            return Err(Fault::Rewritten(head.number).into());
        }
        Some(_) => {}
    }
    Ok(Found { head: end.head(), length: end.length, torn })
}

/// Exclusive lock between processes, until it is dropped.
struct Held<'a>(&'a File);

impl<'a> Held<'a> {
    fn take(lock: &'a File) -> io::Result<Self> {
        match lock.lock() {
            // The file system does not support locks: only one process may append.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Self(lock)),
            locked => locked.map(|()| Self(lock)),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The lock ends with the process at the latest.
        let _ = self.0.unlock();
    }
}

/// Removes everything after `length`, and returns the number of removed bytes.
fn cut(file: &File, length: u64) -> io::Result<u64> {
    let removed = file.metadata()?.len().saturating_sub(length);
    file.set_len(length)?;
    file.sync_all()?;
    Ok(removed)
}

fn read_head(path: &Path) -> Result<Option<Head>, ChainError> {
    let path = path.with_extension("head");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let head = text.trim_end().split_once(' ').and_then(|(number, hash)| {
        Some(Head {
            number: number.parse().ok()?,
            hash: Some(hash).filter(|hash| is_hash(hash))?.to_string(),
        })
    });
    head.map(Some).ok_or_else(|| Fault::NoHead(path.display().to_string()).into())
}

fn write_head(path: &Path, head: &Head) -> io::Result<()> {
    crate::write(&path.with_extension("head"), format!("{} {}\n", head.number, head.hash).as_bytes())
}

fn is_hash(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the hash of a line, whose text up to the end of `previous` is `content`.
fn hash_of(content: &str) -> String {
    hex(&sha256(format!("{content}{END}").as_bytes()))
}

/// The members of a line that chain it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chained {
    number: u64,
    previous: String,
    hash: String,
}

impl Chained {
    /// Reads a line; `None` if its hash does not fit its content.
    fn read(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.strip_suffix(END)?;
        let (rest, hash) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
        let content = rest.strip_suffix(HASH)?;
        let (before, previous) = content.split_at_checked(content.len().checked_sub(DIGITS)?)?;
        let number = before.strip_suffix(PREVIOUS)?.strip_prefix(NUMBER)?.split_once(',')?.0.parse().ok()?;
        (hash_of(content) == hash).then(|| Self {
            number,
            previous: previous.to_string(),
            hash: hash.to_string(),
        })
    }

    fn follows(&self, before: &Position) -> bool {
        self.number == before.number + 1 && self.previous == before.hash
    }
}

/// End of the intact lines before the first bad line.
type Bad = Position;

/// Reads lines after `end`. Returns the new end, and true if an incomplete line follows; or the place of the first bad line.
fn read_on(
    mut lines: impl BufRead,
    mut end: Position,
    visit: &mut dyn FnMut(&Head, &str),
) -> io::Result<Result<(Position, bool), Bad>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(Ok((end, false)));
        }
        let Some(text) = line.strip_suffix(b"\n") else { return Ok(Ok((end, true))) };
        let Some(chained) = Chained::read(text).filter(|chained| chained.follows(&end)) else {
            return Ok(Err(end));
        };
        let length = end.length + line.len() as u64;
        end = Position { number: chained.number, hash: chained.hash, length };
        visit(&end.head(), std::str::from_utf8(text).unwrap_or_default());
    }
}

/// Names the fault of the first line after `before`.
fn classify(path: &Path, before: Position) -> io::Result<Fault> {
    let bytes = fs::read(path)?;
    let lines: Vec<Option<Chained>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| Chained::read(line.strip_suffix(b"\n").unwrap_or(line)))
        .collect();
    let place = before.number as usize;
    Ok(fault(&lines, place, &before))
}

fn fault(lines: &[Option<Chained>], place: usize, before: &Position) -> Fault {
    let number = place as u64 + 1;
    let next = lines.get(place + 1).and_then(Option::as_ref);
    let next_follows = next.is_some_and(|next| next.follows(before));
    let Some(bad) = lines.get(place).and_then(Option::as_ref) else {
        return if next_follows { Fault::Inserted(number) } else { Fault::Changed(number) };
    };
    let all = || lines.iter().flatten();
    if lines.iter().skip(place + 1).flatten().any(|line| line.follows(before)) {
        let copies = all().filter(|line| line.number == bad.number).count();
        let has_origin = all().any(|line| line.hash == bad.previous && line.number + 1 == bad.number);
        return if copies == 1 && has_origin { Fault::Reordered(number) } else { Fault::Inserted(number) };
    }
    if bad.number > number {
        return Fault::Removed { line: number, count: bad.number - number };
    }
    if bad.number == number {
        // The line is intact, but names another line before it, whose own hash fits its content.
        return Fault::Changed(number.saturating_sub(1).max(1));
    }
    // Two lines have this number. The next line names the one that was written by the program.
    match next.is_some_and(|next| next.previous == bad.hash) {
        true => Fault::Inserted(bad.number),
        false => Fault::Inserted(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: usize = 6;

    fn object(number: usize) -> String {
        format!("{{\"event\":\"e{number}\",\"rows\":{number}}}")
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/audit.jsonl");
        (folder, path)
    }

    fn written(path: &Path) -> Vec<String> {
        let (mut chain, torn) = Chain::open(path).expect("a new chain");
        assert_eq!(torn, None);
        for number in 0..LINES {
            chain.append(&object(number), number % 2 == 1).expect("written");
        }
        fs::read_to_string(path).expect("there").lines().map(String::from).collect()
    }

    fn found(path: &Path) -> Result<u64, Fault> {
        match verify(path, &mut |_, _| ()) {
            Ok(verified) => Ok(verified.head.number),
            Err(ChainError::Fault(fault)) => Err(fault),
            Err(ChainError::Io(error)) => panic!("{error}"),
        }
    }

    /// Writes these lines in place of the chain, and returns what `verify` and `open` find.
    fn with(path: &Path, lines: &[String]) -> Result<u64, Fault> {
        fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("writable");
        let found = found(path);
        match (&found, Chain::open(path)) {
            (Ok(_), opened) => drop(opened.expect("intact")),
            (Err(expected), Err(ChainError::Fault(fault))) => assert_eq!(fault, *expected),
            (Err(expected), opened) => panic!("{expected}: {opened:?}"),
        }
        found
    }

    /// The line with other content and with the hashes that fit it.
    fn forged(number: usize, previous: &str, content: &str) -> String {
        let content = format!("{NUMBER}{number},{content}{PREVIOUS}{previous}");
        format!("{content}{HASH}{}{END}", hash_of(&content))
    }

    #[test]
    fn returns_the_lines_that_were_appended() {
        let (_folder, path) = place();
        let lines = written(&path);
        assert_eq!(found(&path), Ok(LINES as u64));
        let mut seen = Vec::new();
        verify(&path, &mut |head, line| seen.push((head.clone(), line.to_string()))).expect("intact");
        assert_eq!(seen.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>(), lines);
        let last: serde_json::Value = serde_json::from_str(&lines[LINES - 1]).expect("JSON");
        let before: serde_json::Value = serde_json::from_str(&lines[LINES - 2]).expect("JSON");
        assert_eq!((&last["number"], &last["rows"]), (&6.into(), &5.into()));
        assert_eq!(last["previous"], before["hash"]);
        // The recipe of the guide.
        let line = &lines[LINES - 1];
        let (content, _) = line.rsplit_once(",\"hash\":").expect("a hash");
        assert_eq!(last["hash"], hex(&sha256(format!("{content}}}").as_bytes())));
    }

    #[test]
    fn detects_every_changed_byte() {
        let (_folder, path) = place();
        let sound = written(&path).join("\n") + "\n";
        for place in 0..sound.len() - 1 {
            let mut bytes = sound.clone().into_bytes();
            bytes[place] ^= 1;
            let line = sound.as_bytes()[..place].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            fs::write(&path, &bytes).expect("writable");
            let fault = found(&path).expect_err("changed");
            assert_eq!(fault, Fault::Changed(line), "byte {place}");
        }
    }

    #[test]
    fn detects_every_removed_line() {
        let (_folder, path) = place();
        let lines = written(&path);
        for first in 0..LINES {
            for count in 1..=LINES - first {
                let mut rest = lines.clone();
                rest.drain(first..first + count);
                let expected = match first + count == LINES {
                    true => Fault::CutOff { end: first as u64, head: LINES as u64 },
                    false => Fault::Removed { line: first as u64 + 1, count: count as u64 },
                };
                assert_eq!(with(&path, &rest), Err(expected), "{first} {count}");
            }
        }
    }

    #[test]
    fn detects_every_moved_and_every_copied_line() {
        let (_folder, path) = place();
        let lines = written(&path);
        for from in 0..LINES {
            for to in 0..LINES {
                if from != to {
                    let mut moved = lines.clone();
                    let line = moved.remove(from);
                    moved.insert(to, line);
                    let first = from.min(to) as u64 + 1;
                    assert_eq!(with(&path, &moved), Err(Fault::Reordered(first)), "{from} {to}");
                    let mut swapped = lines.clone();
                    swapped.swap(from, to);
                    assert_eq!(with(&path, &swapped), Err(Fault::Reordered(first)), "{from} {to}");
                }
                let mut copied = lines.clone();
                copied.insert(to, lines[from].clone());
                // A copy before the line or behind it is the same file.
                let expected = if from == to { to + 2 } else { to + 1 };
                let fault = with(&path, &copied).expect_err("copied");
                assert_eq!(fault, Fault::Inserted(expected as u64), "{from} {to}");
            }
        }
        let mut behind = lines.clone();
        behind.push(lines[LINES - 1].clone());
        assert_eq!(with(&path, &behind), Err(Fault::Inserted(LINES as u64 + 1)));
    }

    #[test]
    fn detects_lines_with_new_hashes() {
        let (_folder, path) = place();
        let lines = written(&path);
        let hash = |line: &String| Chained::read(line.as_bytes()).expect("intact").hash;
        // A changed line whose own hash fits.
        let mut changed = lines.clone();
        changed[2] = forged(3, &hash(&lines[1]), "\"event\":\"other\"");
        assert_eq!(with(&path, &changed), Err(Fault::Changed(3)));
        // An inserted line that follows the line before it, or carries any number.
        for number in [3, 4, 99] {
            let mut inserted = lines.clone();
            inserted.insert(2, forged(number, &hash(&lines[1]), "\"event\":\"other\""));
            assert_eq!(with(&path, &inserted), Err(Fault::Inserted(3)), "{number}");
        }
        let mut inserted = lines.clone();
        inserted.insert(2, "{\"event\":\"other\"}".into());
        assert_eq!(with(&path, &inserted), Err(Fault::Inserted(3)));
        // The whole chain with new hashes: the head shows it.
        let mut again: Vec<String> = Vec::new();
        for number in 1..=LINES {
            let previous = again.last().map_or_else(|| FIRST.to_string(), hash);
            again.push(forged(number, &previous, "\"event\":\"other\""));
        }
        assert_eq!(with(&path, &again), Err(Fault::Rewritten(LINES as u64)));
        fs::remove_file(path.with_extension("head")).expect("there");
        assert!(matches!(with(&path, &lines), Err(Fault::NoHead(_))));
        fs::write(path.with_extension("head"), "6 none\n").expect("writable");
        assert!(matches!(with(&path, &lines), Err(Fault::NoHead(_))));
    }

    #[test]
    fn removes_a_torn_last_line_and_appends_after_it() {
        let (_folder, path) = place();
        let mut lines = written(&path);
        let (mut chain, _) = Chain::open(&path).expect("intact");
        chain.append(&object(7), false).expect("written");
        let whole = fs::read(&path).expect("there");
        let kept = lines.iter().map(|line| line.len() + 1).sum::<usize>();
        for cut in 1..whole.len() - kept {
            fs::write(&path, &whole[..whole.len() - cut]).expect("writable");
            assert!(verify(&path, &mut |_, _| ()).expect("intact").torn);
            let (mut chain, torn) = Chain::open(&path).expect("torn");
            assert_eq!(torn, Some((whole.len() - kept - cut) as u64));
            assert_eq!(chain.append(&object(8), false).expect("written").number, 7);
            assert_eq!(found(&path), Ok(7), "{cut}");
        }
        // A synced line that is torn is missed.
        let last = lines.pop().expect("a line");
        let text = lines.join("\n") + "\n" + &last[..last.len() / 2];
        fs::write(&path, text).expect("writable");
        assert_eq!(found(&path), Err(Fault::CutOff { end: 5, head: 6 }));
    }

    #[test]
    fn follows_the_lines_of_other_processes() {
        let (_folder, path) = place();
        let (mut one, _) = Chain::open(&path).expect("a new chain");
        let (mut two, _) = Chain::open(&path).expect("a new chain");
        let writer = std::thread::spawn(move || {
            (0..50).for_each(|number| drop(one.append(&object(number), number == 9).expect("written")));
        });
        for number in 0..50 {
            two.append(&object(number), false).expect("written");
        }
        writer.join().expect("ended");
        assert_eq!(found(&path), Ok(100));
        // Another process was killed while it wrote, and later another process cuts the file.
        let mut text = fs::read(&path).expect("there");
        let length = text.len();
        text.extend(b"{\"number\":101,");
        fs::write(&path, &text).expect("writable");
        assert_eq!(two.append(&object(1), false).expect("written").number, 101);
        assert_eq!(found(&path), Ok(101));
        fs::write(&path, &text[..length / 2]).expect("writable");
        assert!(matches!(two.append(&object(1), false), Err(ChainError::Fault(Fault::CutOff { .. }))));
        fs::write(
            &path,
            [&text[..length], b"{\"number\":101}\n{\"number\":102}\n{\"number\":103}\n", &text].concat(),
        )
        .expect("writable");
        assert!(matches!(two.append(&object(1), false), Err(ChainError::Fault(_))));
    }
}
