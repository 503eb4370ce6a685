//! Numbers and words as little-endian bytes, the content of a linker's sealed messages.

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

/// Reads a message. A message that is too short or too long is an error rather than a panic, since another
/// party wrote it. The reader checks that the bytes exist before it allocates memory for a count.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], LinkError> {
        let (head, rest) =
            self.0.split_first_chunk().ok_or_else(|| LinkError::Message("it is too short".into()))?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn number(&mut self) -> Result<u32, LinkError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn double(&mut self) -> Result<f64, LinkError> {
        self.take().map(f64::from_le_bytes)
    }

    /// Reads the last words of a message, `width` for each of `rows`, up to the end of the message.
    pub(super) fn words(self, rows: usize, width: usize) -> Result<Vec<u64>, LinkError> {
        expect(self.0.len(), rows, 8 * width)?;
        Ok(self.0.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Reads the last numbers of a message, `width` for each of `rows`, up to the end of the message. Refuses
    /// numbers that are not finite.
    pub(super) fn doubles(self, rows: usize, width: usize) -> Result<Vec<f64>, LinkError> {
        expect(self.0.len(), rows, 8 * width)?;
        let doubles: Vec<f64> = self.0.as_chunks().0.iter().map(|word| f64::from_le_bytes(*word)).collect();
        match doubles.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(LinkError::Message(format!("it contains {x} instead of a finite number"))),
            None => Ok(doubles),
        }
    }
}

/// Refuses a message that does not have `size` bytes for each of its stated `rows`.
pub(super) fn expect(bytes: usize, rows: usize, size: usize) -> Result<(), LinkError> {
    if rows.checked_mul(size) == Some(bytes) {
        return Ok(());
    }
    Err(LinkError::Message(format!("it contains {bytes} bytes instead of {rows} keys of {size} bytes")))
}

/// Returns the querier's sealed bytes. Refuses plain keys.
pub(super) fn sealed(queries: &Keys) -> Result<&Sealed, LinkError> {
    match queries {
        Keys::Sealed(message) => Ok(message),
        _ => Err(LinkError::Message(format!("it contains {} instead of sealed keys", queries.kind_name()))),
    }
}

/// Refuses sealed keys if plain keys are expected.
pub(super) fn in_the_clear(queries: &Keys) -> Result<(), LinkError> {
    match queries {
        Keys::Sealed(_) => Err(LinkError::Message("it contains sealed keys instead of plain keys".into())),
        _ => Ok(()),
    }
}
