//! Numbers and words as little-endian bytes: the inside of a linker's sealed messages.

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

/// Reads a message; one that ends too early is an error, not a panic: another party wrote it.
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

    /// The last `count` words: nothing may stand behind them.
    pub(super) fn words(&mut self, count: usize) -> Result<Vec<u64>, LinkError> {
        if self.0.len() != 8 * count {
            let problem = format!("{count} words are expected; {} bytes are there", self.0.len());
            return Err(LinkError::Message(problem));
        }
        Ok(self.0.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}
