//! Tensor backends by name, chosen at run time.
//!
//! This is the only crate that names a backend. `suite/equivalence.rs` of the crate `fet` tests that all devices compute the same.

use burn::tensor::Device;

/// Selected device.
#[derive(Debug, Clone)]
pub struct Backend {
    /// Its name, one of [`NAMES`]; the name of a GPU may end in `:index`.
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
    #[error("`device` \"{name}\" was not compiled in; build with `--features {feature}`{}", if *feature == "libtorch" {
        " (`cargo xtask libtorch` fetches LibTorch; it is then used by every `cargo xtask` command)"
    } else {
        ""
    })]
    NotCompiled {
        /// Requested device.
        name: String,
        /// Feature of the program that has it.
        feature: &'static str,
    },
    /// The backend was compiled in, but sees no such GPU.
    #[error("`device` \"{name}\" does not exist: {finder} finds {found} {}", if *found == 1 { "device" } else { "devices" })]
    NoGpu {
        /// Requested device.
        name: String,
        /// The library that looked for it.
        finder: &'static str,
        /// Number of devices that it sees.
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
pub const NAMES: [&str; 6] = ["flex", "ndarray", "wgpu", "cuda", "libtorch", "libtorch-cuda"];

/// Returns the feature of the program that has a device, or `None` for a device of every build.
fn feature(name: &str) -> Option<&'static str> {
    match name {
        "wgpu" => Some("wgpu"),
        "cuda" => Some("cuda"),
        "libtorch" | "libtorch-cuda" => Some("libtorch"),
        _ => None,
    }
}

/// True if the program was built with the device `name`.
pub fn is_compiled(name: &str) -> bool {
    NAMES.contains(&name)
        && match feature(name) {
            Some("wgpu") => cfg!(feature = "wgpu"),
            Some("cuda") => cfg!(feature = "cuda"),
            Some(_) => cfg!(feature = "libtorch"),
            None => true,
        }
}

/// Returns the kind and the index of a device, or `None` if no device has this name.
fn parts(name: &str) -> Option<(&str, usize)> {
    match name.split_once(':') {
        Some((kind @ ("wgpu" | "cuda" | "libtorch-cuda"), index)) => Some((kind, index.parse().ok()?)),
        Some(_) => None,
        None => NAMES.contains(&name).then_some((name, 0)),
    }
}

/// True if a device has this name, even if this build or machine lacks it.
pub fn is_name(name: &str) -> bool {
    parts(name).is_some()
}

/// Opens a device by name.
pub fn open(name: &str) -> Result<Backend, BackendError> {
    let (kind, index) = parts(name).ok_or_else(|| unknown(name))?;
    if !is_compiled(kind) {
        let feature = feature(kind).unwrap_or_default();
        return Err(BackendError::NotCompiled { name: name.to_string(), feature });
    }
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let on_host = matches!(kind, "flex" | "ndarray" | "libtorch");
    let device = match kind {
        "flex" => Device::flex(),
        "ndarray" => ndarray(),
        "wgpu" => wgpu(name, index)?,
        "cuda" => cuda(name, index)?,
        _ => libtorch(name, kind, index)?,
    };
    Ok(Backend { name: name.to_string(), device, party_threads: if on_host { cores } else { 1 }, on_host })
}

#[expect(
    deprecated,
    reason = "users select it by name; ARCHITECTURE.md describes the change to its successor"
)]
fn ndarray() -> Device {
    Device::ndarray()
}

/// Returns a device of those that CubeCL finds. Without an adapter a tensor would stop the program.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn among(
    found: impl IntoIterator<Item = Device>,
    name: &str,
    index: usize,
    finder: &'static str,
) -> Result<Device, BackendError> {
    let found: Vec<Device> = found.into_iter().collect();
    let device = found.get(index).cloned();
    device.ok_or_else(|| BackendError::NoGpu { name: name.to_string(), finder, found: found.len() })
}

#[cfg(feature = "wgpu")]
fn wgpu(name: &str, index: usize) -> Result<Device, BackendError> {
    among(Device::enumerate(burn::tensor::DeviceType::Wgpu), name, index, "wgpu")
}

#[cfg(feature = "cuda")]
fn cuda(name: &str, index: usize) -> Result<Device, BackendError> {
    among(Device::enumerate(burn::tensor::DeviceType::Cuda), name, index, "CUDA")
}

#[cfg(feature = "libtorch")]
#[expect(
    deprecated,
    reason = "users select it by name; ARCHITECTURE.md describes the change to its successor"
)]
fn libtorch(name: &str, kind: &str, index: usize) -> Result<Device, BackendError> {
    if kind == "libtorch" {
        return Ok(Device::libtorch());
    }
    let found = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    if index < found {
        Ok(Device::libtorch_cuda(index))
    } else if !has_cuda() {
        Err(BackendError::NoCuda { name: name.into() })
    } else {
        Err(BackendError::NoGpu { name: name.into(), finder: "LibTorch", found })
    }
}

// A build without a feature does not reach these: `is_compiled` refused the name.
#[cfg(not(feature = "wgpu"))]
fn wgpu(name: &str, _index: usize) -> Result<Device, BackendError> {
    Err(unknown(name))
}

#[cfg(not(feature = "cuda"))]
fn cuda(name: &str, _index: usize) -> Result<Device, BackendError> {
    Err(unknown(name))
}

#[cfg(not(feature = "libtorch"))]
fn libtorch(name: &str, _kind: &str, _index: usize) -> Result<Device, BackendError> {
    Err(unknown(name))
}

fn unknown(name: &str) -> BackendError {
    let known = NAMES.map(|name| format!("\"{name}\"")).join(", ");
    let hint = fet_io::did_you_mean(name, NAMES);
    BackendError::Unknown { name: name.to_string(), known, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gpu_has_an_index() {
        let cases = [("flex", true), ("cuda:1", true), ("wgpu:0", true), ("libtorch-cuda:2", true)];
        let others = [("flex:0", false), ("cuda:", false), ("cuda:one", false), ("gpu", false), ("", false)];
        for (name, expected) in cases.into_iter().chain(others) {
            assert_eq!(is_name(name), expected, "{name}");
        }
    }
}
