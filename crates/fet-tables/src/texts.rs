//! A column of texts in one piece of memory: 16 bytes a row beside the bytes of the texts themselves.

/// Texts, one a row; a row may be missing. An empty text is not a missing one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    /// Where each row's text ends in `bytes`; it begins where the row before ends.
    ends: Vec<usize>,
    present: Vec<bool>,
}

impl Texts {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text of row `row`; none if it is missing or there is no such row.
    pub fn get(&self, row: usize) -> Option<&str> {
        if !self.present.get(row).copied().unwrap_or(false) {
            return None;
        }
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        Some(&self.bytes[start..self.ends[row]])
    }

    /// The rows in turn.
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
