//! Id of a run, which its parties' states and models carry.
//!
//! The primary draws the id, stores it in the run's folder, and sends it when it joins. A party stores its
//! files of a run in a folder with this name. Therefore runs cannot use each other's states, and predictions
//! use the models of one run. A run that does not continue from a checkpoint gets a new id.
//!
//! The primary also stores the checksum of the run's final model, so that predictions use only models that
//! were trained together.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use crate::folder::{CHECKPOINT, MODEL, PARTIES, RUN_ID};
use fet_io::input::{InputError, input};

/// Run id of 32 random hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunId(String);

impl RunId {
    /// Draws a new id.
    pub(super) fn draw() -> anyhow::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| input(format!("the system provides no random numbers ({error})")))?;
        Ok(Self(fet_io::hex(&bytes)))
    }

    /// Parses an id, and refuses any other text, because the id becomes the name of a folder.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| Self(text.to_string()))
    }

    /// Returns the id of the run in a folder, with the checksum of its final model if the run has ended;
    /// `None` if the folder lacks an id.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<(Self, Option<String>)>> {
        let path = folder.join(PARTIES).join(RUN_ID);
        let bad = |problem: String| input(format!("{}: {problem}", path.display()));
        if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(None);
        }
        let text = fet_io::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
        let rule = "must contain the run id of this run, 32 hexadecimal digits";
        let mut lines = text.lines();
        let run = lines.next().and_then(Self::parse).ok_or_else(|| bad(rule.into()))?;
        Ok(Some((run, lines.next().map(str::to_string))))
    }

    /// Returns the id of the run that the folder's checkpoint belongs to; `None` without a checkpoint.
    pub(super) fn continued(folder: &Path) -> anyhow::Result<Option<Self>> {
        if !folder.join(CHECKPOINT).exists() {
            // Files that other parties store under an earlier id belong to another run.
            return Ok(None);
        }
        match Self::read(folder)? {
            Some((run, _)) => Ok(Some(run)),
            None => Err(input(format!(
                "{} is missing: the other parties know the run of this checkpoint by the id in this file. Restore the \
                 file, or remove the folder to start again.",
                folder.join(PARTIES).join(RUN_ID).display()
            ))),
        }
    }

    /// Returns the id of the finished run in a folder, and checks that the model is still the run's final
    /// model.
    pub(super) fn finished(folder: &Path) -> anyhow::Result<Self> {
        let Some((run, checksum)) = Self::read(folder)? else {
            return Err(input(format!(
                "{}: the run had no parties on other machines; remove --parties",
                folder.display()
            )));
        };
        let model = folder.join(MODEL);
        let found =
            fet_io::sha256_of_file(&model).map_err(|error| input(format!("{}: {error}", model.display())))?;
        if checksum.as_deref() != Some(fet_io::hex(&found).as_str()) {
            return Err(input(format!(
                "{} and {} must belong to the same finished run. The other parties' models belong to another run, or \
                 the run is not finished; in that case give its command again.",
                model.display(),
                folder.join(PARTIES).join(RUN_ID).display()
            )));
        }
        Ok(run)
    }

    /// Writes the id into the folder of the run, before any party saves anything under the id. With `model`,
    /// also writes the checksum of the final model.
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
    fn accepts_only_hexadecimal_run_ids() {
        let drawn = RunId::draw().expect("randomness");
        assert_eq!(RunId::parse(&drawn.to_string()), Some(drawn.clone()));
        assert_ne!(RunId::draw().expect("randomness"), drawn);
        for text in ["", "..", "../../../../../../../../etc/passwd", &"A".repeat(32), &"a".repeat(33)] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }
}
