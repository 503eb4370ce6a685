//! The `fet` command as a library, so that tests can call the functions behind the command.
//!
//! Only this crate references every plug-in crate. The `inventory` crate loses plug-ins of a crate that is
//! never referenced.

mod access;
pub mod account;
pub mod attack;
pub mod audit;
mod bounds;
mod calibration;
mod card;
mod cli;
mod code;
pub mod data;
mod drift;
pub mod exit;
pub mod experiment_file;
pub mod explain;
pub mod finished;
mod folder;
pub mod help;
mod http_server;
pub mod init;
mod labelled;
pub mod ledger;
pub mod list;
mod lock;
mod page;
pub mod parties;
pub mod plot;
pub mod predict;
mod predictions;
pub mod provenance;
pub mod reference;
mod reporter;
pub mod run;
pub mod schema;
pub mod service;
pub mod show;
pub mod study;
#[cfg(feature = "telemetry")]
mod telemetry;
pub mod threads;
pub mod train;
mod watch;
mod worth;

pub use cli::{main, main_with};

// The plug-ins of the program: the linker drops a crate that no code names.
use custom_linker as _;
use fet_attacks as _;
use fet_baselines as _;
use fet_components as _;
use fet_data as _;
use fet_linkers as _;

/// Each training step allocates and frees tensors of several megabytes. The C library's allocator returns that memory to the
/// operating system, which then has to clear new pages for the next step.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The code of the guides in `docs`, compiled and run as documentation tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/add-a-dataset.md")]
    struct Dataset;
    #[doc = include_str!("../../../docs/add-a-label-protection.md")]
    struct LabelProtection;
    #[doc = include_str!("../../../docs/add-a-linker.md")]
    struct Linker;
    #[doc = include_str!("../../../docs/add-a-mechanism.md")]
    struct Mechanism;
    #[doc = include_str!("../../../docs/add-a-method.md")]
    struct Method;
    #[doc = include_str!("../../../docs/add-an-aggregator.md")]
    struct Aggregator;
    #[doc = include_str!("../../../docs/add-an-attack.md")]
    struct Attack;
    #[doc = include_str!("../../../docs/add-an-encoder.md")]
    struct Encoder;
}
