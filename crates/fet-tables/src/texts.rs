//! Column of texts in one block of memory: 16 bytes per row in addition to the bytes of the texts.

/// Texts, one per row. A row may be missing, which differs from an empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    /// End of each row's text in `bytes`; the text begins where the previous row ends.
    ends: Vec<usize>,
    present: Vec<bool>,
}

impl Texts {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if the column is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the text of row `row`, or `None` if the text is missing or the row does not exist.
    pub fn get(&self, row: usize) -> Option<&str> {
        if !self.present.get(row).copied().unwrap_or(false) {
            return None;
        }
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        Some(&self.bytes[start..self.ends[row]])
    }

    /// Iterates over the rows.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Adds a row.
    pub fn push(&mut self, text: Option<&str>) {
        self.bytes.push_str(text.unwrap_or_default());
        self.ends.push(self.bytes.len());
        self.present.push(text.is_some());
    }

    /// Adds the rows of `other`.
    pub(crate) fn append(&mut self, other: &Self) {
        let before = self.bytes.len();
        self.bytes.push_str(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| end + before));
        self.present.extend_from_slice(&other.present);
    }
}

impl<'a> FromIterator<Option<&'a str>> for Texts {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(texts: I) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| all.push(text));
        all
    }
}
