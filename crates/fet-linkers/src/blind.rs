//! Common parts of linkers that read no keys: the primary sends a zero for each key.
//!
//! The zeros state the number of keys. To claim many keys, a primary must send as many bytes. `aligned` and
//! `random` determine the records of each row.

use fet_core::data::{KeyKind, Keys, Sealed};
use fet_core::linker::{About, LinkError, LinkTask, Querier, Reveals, check_shapes};

use crate::wire;

/// Returns the description of such a linker: it only reveals a number, and its links lack similarities.
pub(crate) fn about(neighbours: usize) -> About {
    let reveals = Reveals {
        secondary: "the number of primary records",
        primary: "nothing",
        eavesdropper: "the number of primary records",
    };
    let about = About::new(neighbours, KeyKind::Either, reveals);
    About { similarities: false, in_the_clear: false, ..about }
}

/// The primary's side, which sends a zero for each key.
pub(crate) struct Count;

impl Querier for Count {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        Ok(Keys::Sealed(Sealed::new(queries.rows(), queries.columns(), vec![0; queries.rows()])))
    }
}

/// Returns the number of keys that a primary sent as zeros. The task must have at least `neighbours` records.
pub(crate) fn count(task: &LinkTask<'_>, neighbours: usize) -> Result<usize, LinkError> {
    let (queries, records) = (wire::sealed(task.queries)?, task.records);
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, false)?;
    wire::expect(queries.bytes().len(), queries.rows(), 1)?;
    Ok(queries.rows())
}
