//! Which run a party's states and model are of.
//!
//! The primary draws it, keeps it in the run's folder, and says it when it joins. A party keeps what it saves of a run in a folder
//! of that name: the runs that it takes part in do not take each other's states, and predictions ask the models of one run. A run that
//! does not go on from a checkpoint gets a new one. Beside it stands the checksum of the model that the run has ended with, so that
//! predictions are made by models that were trained together.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use crate::folder::{CHECKPOINT, MODEL, PARTIES, RUN_ID};
use fet_io::input::{InputError, input};

/// 32 hexadecimal digits, drawn at random.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunId(String);

impl RunId {
    /// One that no other run has.
    pub(super) fn draw() -> anyhow::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| input(format!("the system gives no randomness ({error})")))?;
        Ok(Self(fet_io::hex(&bytes)))
    }

    /// Nothing else: it becomes the name of a folder.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| Self(text.to_string()))
    }

    /// That of the run in a folder, with the checksum of the model that it has ended with, if it has; nothing where there is none.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<(Self, Option<String>)>> {
        let path = folder.join(PARTIES).join(RUN_ID);
        let bad = |problem: String| input(format!("{}: {problem}", path.display()));
        if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(None);
        }
        let text = fet_io::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
        let rule = "must hold the 32 hexadecimal digits by which the other parties know this run";
        let mut lines = text.lines();
        let run = lines.next().and_then(Self::parse).ok_or_else(|| bad(rule.into()))?;
        Ok(Some((run, lines.next().map(str::to_string))))
    }

    /// That of the run which a folder's checkpoint is of.
    pub(super) fn continued(folder: &Path) -> anyhow::Result<Option<Self>> {
        if !folder.join(CHECKPOINT).exists() {
            // What other parties keep under an earlier name belongs to another run.
            return Ok(None);
        }
        match Self::read(folder)? {
            Some((run, _)) => Ok(Some(run)),
            None => Err(input(format!(
                "{} is missing: by it the other parties know the run of this checkpoint; put it back, or remove the folder to start \
                 again",
                folder.join(PARTIES).join(RUN_ID).display()
            ))),
        }
    }

    /// That of the finished run in a folder, whose model is there still.
    pub(super) fn finished(folder: &Path) -> anyhow::Result<Self> {
        let Some((run, checksum)) = Self::read(folder)? else {
            return Err(input(format!(
                "{}: the run had no parties elsewhere, which have no model of it; leave out --parties",
                folder.display()
            )));
        };
        let model = folder.join(MODEL);
        let found =
            fet_io::sha256_of_file(&model).map_err(|error| input(format!("{}: {error}", model.display())))?;
        if checksum.as_deref() != Some(fet_io::hex(&found).as_str()) {
            return Err(input(format!(
                "{} and {} must be of the same run, which has ended: the other parties' models belong to another one, or the run \
                 is not at its end; give the command again that began it",
                model.display(),
                folder.join(PARTIES).join(RUN_ID).display()
            )));
        }
        Ok(run)
    }

    /// Keeps it in the folder of the run, before any party saves anything under it; with the run's model once that is there.
    pub(crate) fn keep(&self, folder: &Path, model: Option<&[u8]>) -> anyhow::Result<()> {
        let path = folder.join(PARTIES).join(RUN_ID);
        let failed =
            |error: std::io::Error| InputError(format!("{} cannot be written: {error}", path.display()));
        std::fs::create_dir_all(folder.join(PARTIES)).map_err(failed)?;
        let checksum =
            model.map_or_else(String::new, |model| format!("{}\n", fet_io::hex(&fet_io::sha256(model))));
        Ok(fet_io::write(&path, format!("{self}\n{checksum}").as_bytes()).map_err(failed)?)
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
