//! The end of a run: parties write their best models and remove the states saved during the run.

use fet_core::message::Request;

use super::{RunError, Trainer};

impl Trainer {
    /// Ends the run: the secondaries write their best models.
    pub fn finish(&mut self) -> Result<(), RunError> {
        let here = self.here();
        Ok(self.federation.command(&here, vec![Request::Finish; here.len()])?)
    }

    /// Removes the states that the secondaries saved during the run. The report must be written before.
    pub fn forget(&mut self) -> Result<(), RunError> {
        let here = self.here();
        Ok(self.federation.command(&here, vec![Request::Forget; here.len()])?)
    }
}
