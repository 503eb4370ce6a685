//! Attacks of the primary on single records: membership in a secondary's table, and correctness of a link.

mod linkage;
mod membership;

pub use linkage::LinkageSettings;
pub use membership::MembershipSettings;
