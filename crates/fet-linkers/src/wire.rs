//! Numbers and words as little-endian bytes: the content of a linker's sealed messages.

use fet_core::data::{Keys, Sealed};
use fet_core::linker::LinkError;

/// Writes a message.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn double(&mut self, value: f64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn words(&mut self, words: &[u64]) {
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a message; one that is too short or too long is an error, not a panic: another party wrote it. Allocates
/// nothing for a count before checking that the bytes exist.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], LinkError> {
        let (head, rest) =
            self.0.split_first_chunk().ok_or_else(|| LinkError::Message("it ends too early".into()))?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn number(&mut self) -> Result<u32, LinkError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn double(&mut self) -> Result<f64, LinkError> {
        self.take().map(f64::from_le_bytes)
    }

    /// The last words of a message, `width` for each of `rows`: nothing may follow them.
    pub(super) fn words(self, rows: usize, width: usize) -> Result<Vec<u64>, LinkError> {
        expect(self.0.len(), rows, 8 * width)?;
        Ok(self.0.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// The last numbers of a message, likewise; all of them finite.
    pub(super) fn doubles(self, rows: usize, width: usize) -> Result<Vec<f64>, LinkError> {
        expect(self.0.len(), rows, 8 * width)?;
        let doubles: Vec<f64> = self.0.as_chunks().0.iter().map(|word| f64::from_le_bytes(*word)).collect();
        match doubles.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(LinkError::Message(format!("it holds {x} where a finite number is expected"))),
            None => Ok(doubles),
        }
    }
}

/// Refuses a message that does not have `size` bytes for each of its stated `rows`.
pub(super) fn expect(bytes: usize, rows: usize, size: usize) -> Result<(), LinkError> {
    if rows.checked_mul(size) == Some(bytes) {
        return Ok(());
    }
    Err(LinkError::Message(format!("{bytes} bytes are there; {rows} keys of {size} bytes are expected")))
}

/// The asker's sealed bytes; refuses keys in the clear.
pub(super) fn sealed(queries: &Keys) -> Result<&Sealed, LinkError> {
    match queries {
        Keys::Sealed(message) => Ok(message),
        _ => Err(LinkError::Message(format!("it holds {}; sealed keys are expected", queries.kind_name()))),
    }
}

/// Refuses sealed keys where keys in the clear are expected.
pub(super) fn in_the_clear(queries: &Keys) -> Result<(), LinkError> {
    match queries {
        Keys::Sealed(_) => {
            Err(LinkError::Message("it holds sealed keys; keys in the clear are expected".into()))
        }
        _ => Ok(()),
    }
}
