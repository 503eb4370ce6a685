//! Tensor backends by name, chosen at run time.
//!
//! This is the only crate that names a backend. `suite/equivalence.rs` of the crate `fet` tests that all devices compute the same.

use burn::tensor::Device;

/// Selected device.
#[derive(Debug, Clone)]
pub struct Backend {
    /// Its name: `flex`, `ndarray`, `libtorch`, or `libtorch-cuda` with an optional `:index`.
    pub name: String,
    /// Device of the tensors, without autodiff.
    pub device: Device,
    /// Number of parties that may compute at the same time. Element-wise work and small products keep only one core busy, so
    /// parties on threads are faster. See [`Backend::share`].
    pub party_threads: usize,
    /// True if tensors are in the host's memory.
    pub on_host: bool,
}

impl Backend {
    /// Divides the cores among this many parties: LibTorch uses fewer threads if parties run on threads.
    pub fn share(&self, parties: usize) {
        #[cfg(feature = "libtorch")]
        if self.name == "libtorch" && parties > 1 {
            tch::set_num_threads(1);
        }
        #[cfg(not(feature = "libtorch"))]
        let _ = parties;
    }
}

/// Error for an unavailable device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No device has this name.
    #[error("`device` must be one of {known}; it is \"{name}\"{hint}")]
    Unknown {
        /// Requested device.
        name: String,
        /// The names that exist.
        known: String,
        /// "; did you mean ...?" if a known name is similar.
        hint: String,
    },
    /// The device exists, but this program was built without it.
    #[error(
        "`device` \"{name}\" was not compiled in; build with `--features libtorch` \
         (`cargo xtask libtorch` fetches LibTorch; it is then used by every `cargo xtask` command)"
    )]
    NotCompiled {
        /// Requested device.
        name: String,
    },
    /// LibTorch was compiled in, but sees no such GPU.
    #[error("`device` \"{name}\" does not exist: LibTorch finds {found} CUDA devices")]
    NoGpu {
        /// Requested device.
        name: String,
        /// Number of GPUs that LibTorch sees.
        found: usize,
    },
    /// A LibTorch without CUDA.
    #[error(
        "`device` \"{name}\" needs a LibTorch with CUDA, but this one lacks CUDA: `cargo xtask libtorch --cuda` fetches one with CUDA"
    )]
    NoCuda {
        /// Requested device.
        name: String,
    },
}

/// True if the linked LibTorch has CUDA, with or without a GPU.
pub fn has_cuda() -> bool {
    #[cfg(feature = "libtorch")]
    let has_cuda = tch::utils::has_cudart();
    #[cfg(not(feature = "libtorch"))]
    let has_cuda = false;
    has_cuda
}

/// Device names in listing order.
pub const NAMES: [&str; 4] = ["flex", "ndarray", "libtorch", "libtorch-cuda"];

/// True if the program was built with the device `name`.
pub fn is_compiled(name: &str) -> bool {
    let pure = matches!(name, "flex" | "ndarray");
    pure || (cfg!(feature = "libtorch") && matches!(name, "libtorch" | "libtorch-cuda"))
}

/// Opens a device by name.
pub fn open(name: &str) -> Result<Backend, BackendError> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let on_host = !name.starts_with("libtorch-cuda");
    let backend =
        |device, party_threads| Ok(Backend { name: name.to_string(), device, party_threads, on_host });
    match name {
        "flex" => backend(Device::flex(), cores),
        "ndarray" => backend(ndarray(), cores),
        _ => libtorch(name).and_then(|device| backend(device, if on_host { cores } else { 1 })),
    }
}

#[expect(
    deprecated,
    reason = "users select it by name; ARCHITECTURE.md describes the change to its successor"
)]
fn ndarray() -> Device {
    Device::ndarray()
}

#[cfg(feature = "libtorch")]
#[expect(
    deprecated,
    reason = "users select it by name; ARCHITECTURE.md describes the change to its successor"
)]
fn libtorch(name: &str) -> Result<Device, BackendError> {
    if name == "libtorch" {
        return Ok(Device::libtorch());
    }
    let index = match name.strip_prefix("libtorch-cuda") {
        Some("") => Some(0),
        Some(index) => index.strip_prefix(':').and_then(|index| index.parse::<usize>().ok()),
        None => None,
    };
    let index = index.ok_or_else(|| unknown(name))?;
    let found = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    if index < found {
        Ok(Device::libtorch_cuda(index))
    } else if !has_cuda() {
        Err(BackendError::NoCuda { name: name.into() })
    } else {
        Err(BackendError::NoGpu { name: name.into(), found })
    }
}

#[cfg(not(feature = "libtorch"))]
fn libtorch(name: &str) -> Result<Device, BackendError> {
    let base = name.split(':').next().unwrap_or(name);
    if base == "libtorch" || base == "libtorch-cuda" {
        return Err(BackendError::NotCompiled { name: name.to_string() });
    }
    Err(unknown(name))
}

fn unknown(name: &str) -> BackendError {
    let known = NAMES.map(|name| format!("\"{name}\"")).join(", ");
    let hint = fet_io::did_you_mean(name, NAMES);
    BackendError::Unknown { name: name.to_string(), known, hint }
}
