//! Messages of the protocols: sequences of group elements, and reasons for refusing them.

/// Bytes of a group element.
pub const ELEMENT: usize = 32;

/// Reason for refusing a message of the other party.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PsiError {
    /// The message is not a sequence of whole elements.
    #[error("a message must consist of whole elements of {ELEMENT} bytes; it has {0} bytes")]
    Length(usize),
    /// The element does not belong to the group, or it is the identity, which every exponent maps to itself.
    #[error("element {0} of a message is not a valid element of the group")]
    Element(usize),
    /// The answer has a different number of elements than the request.
    #[error("an answer must have {expected} elements; it has {found}")]
    Count {
        /// Number of elements sent.
        expected: usize,
        /// Number of elements received.
        found: usize,
    },
    /// An element occurs twice although each key is sent once. Equal elements would mark the key that they
    /// encode.
    #[error("element {0} of a message is repeated; each element may occur once")]
    Repeated(usize),
    /// The records do not have the stated length.
    #[error("records must have {expected} bytes in total; they have {found}")]
    Records {
        /// Stated number of bytes.
        expected: u128,
        /// Number of bytes received.
        found: usize,
    },
    /// A record of a common key is not the record that its data holder sealed.
    #[error(
        "the record for row {0} (from 0) cannot be opened: it differs from the record that its data holder sealed"
    )]
    Sealed(usize),
}

/// Returns the elements of a message.
pub(super) fn elements(message: &[u8]) -> Result<&[[u8; ELEMENT]], PsiError> {
    match message.as_chunks::<ELEMENT>() {
        (elements, []) => Ok(elements),
        _ => Err(PsiError::Length(message.len())),
    }
}
