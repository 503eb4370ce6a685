//! Which run a party's states and model are of.
//!
//! The primary draws it, keeps it in the run's folder, and says it when it joins. A party keeps what it saves of a run in a folder
//! of that name: the runs that it takes part in do not take each other's states, and predictions ask the models of one run.

use std::fmt;
use std::path::Path;

use crate::folder::{PARTIES, RUN_ID};
use crate::input::{InputError, input};

/// 32 hexadecimal digits, drawn at random.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunId(String);

impl RunId {
    /// One that no other run has.
    pub(super) fn draw() -> anyhow::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| input(format!("the system gives no randomness ({error})")))?;
        Ok(Self(fet_files::hex(&bytes)))
    }

    /// Nothing else: it becomes the name of a folder.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| Self(text.to_string()))
    }

    /// That of the run in a folder; nothing where there is none yet.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(PARTIES).join(RUN_ID);
        if !path.exists() {
            return Ok(None);
        }
        let bad = |problem: String| input(format!("{}: {problem}", path.display()));
        let text = fet_files::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
        let rule = "must hold the 32 hexadecimal digits by which the other parties know this run";
        Self::parse(text.trim_end()).map(Some).ok_or_else(|| bad(rule.into()))
    }

    /// Keeps it in the folder of the run, before any party saves anything under it.
    pub(crate) fn keep(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(PARTIES).join(RUN_ID);
        let failed =
            |error: std::io::Error| InputError(format!("{} cannot be written: {error}", path.display()));
        std::fs::create_dir_all(folder.join(PARTIES)).map_err(failed)?;
        Ok(fet_files::write(&path, format!("{self}\n").as_bytes()).map_err(failed)?)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_become_a_folder() {
        let drawn = RunId::draw().expect("randomness");
        assert_eq!(RunId::parse(&drawn.to_string()), Some(drawn.clone()));
        assert_ne!(RunId::draw().expect("randomness"), drawn);
        for text in ["", "..", "../../../../../../../../etc/passwd", &"A".repeat(32), &"a".repeat(33)] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }
}
