//! `fet-e2e golden`: compares this program with the figures of another implementation.
//!
//! A golden file is a safetensors file with the parameters, inputs, outputs and gradients of a PyTorch model
//! by the authors of FeT or FedSim, or with a training run of such a model. The check builds the model from
//! the same slots as a run and cuts the graph at every party boundary. It trains nothing on data.

mod file;
mod model;
mod names;
mod slots;
mod training;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fet_backends::Backend;
use fet_io::input::InputError;
use serde::Serialize;

pub use file::{GoldenError, GoldenFile};
use model::{GoldenModel, finite, largest};
pub use training::check_run;

/// Arguments of `fet-e2e golden`.
#[derive(Debug, clap::Args)]
pub struct GoldenArguments {
    /// Golden file.
    file: PathBuf,
    /// Tensor backend.
    #[arg(long, default_value = "flex")]
    device: String,
}

/// Prints the verdict on a file as one JSON line. Exit codes: 0: all figures are met. 1: a figure is missed.
/// 2: the file cannot be checked.
///
/// Output and exit codes equal those of the former command `fet golden`, for scripts that read them.
pub fn run(arguments: &GoldenArguments) -> ExitCode {
    let _ = ctrlc::set_handler(|| fet_io::leave(130));
    match answer(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            fet_io::note!("fet: {}", fet_io::shorten(&format!("{error:#}")));
            ExitCode::from(fet_io::exit::code(&error))
        }
    }
}

fn answer(GoldenArguments { file, device }: &GoldenArguments) -> anyhow::Result<bool> {
    let backend = fet_backends::open(device).map_err(|e| InputError(e.to_string()))?;
    let verdict = check(file, &backend).map_err(|e| InputError(e.to_string()))?;
    fet_io::answer(&format!("{}\n", serde_json::to_string(&verdict)?))?;
    Ok(verdict.is_met())
}

/// Verdict on one file, printed as one JSON line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum GoldenVerdict {
    /// One forward and backward pass.
    Pass {
        /// Name of the file.
        file: String,
        /// Name of the device.
        device: String,
        /// Largest absolute difference of an output.
        output_max_abs: f64,
        /// Absolute difference of the loss.
        loss_abs: f64,
        /// Largest difference of a gradient, relative to the largest absolute value of that gradient.
        grad_max_rel: f64,
    },
    /// A training run.
    Training {
        /// Name of the file.
        file: String,
        /// Name of the device.
        device: String,
        /// Largest absolute difference of a loss.
        loss_max_abs: f64,
        /// Largest difference of a parameter after training, relative to the parameter's largest absolute
        /// value.
        param_max_rel: f64,
    },
}

impl GoldenVerdict {
    /// Returns true if all differences are within their tolerances.
    ///
    /// Outputs and losses: 1e-5, absolute. Gradients and parameters: 1e-4 of their largest value.
    pub fn is_met(&self) -> bool {
        match self {
            Self::Pass { output_max_abs, loss_abs, grad_max_rel, .. } => {
                *output_max_abs <= 1e-5 && *loss_abs <= 1e-5 && *grad_max_rel <= 1e-4
            }
            Self::Training { loss_max_abs, param_max_rel, .. } => {
                *loss_max_abs <= 1e-5 && *param_max_rel <= 1e-4
            }
        }
    }
}

/// Compares this program with the file at `path` on a device, with the device's default kernels.
pub fn check(path: &Path, backend: &Backend) -> Result<GoldenVerdict, GoldenError> {
    check_with(path, backend, backend.on_host)
}

/// Compares this program with the file at `path`, with or without the host's fused kernels.
pub fn check_with(path: &Path, backend: &Backend, fused: bool) -> Result<GoldenVerdict, GoldenError> {
    let golden = GoldenFile::read(path)?;
    let mut model = GoldenModel::new(&golden, &backend.device, fused)?;
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let device = backend.name.clone();
    match golden.losses()? {
        Some(losses) => {
            let learning_rate = golden.number("lr")?;
            let mut loss_max_abs = 0.0f64;
            for expected in losses {
                let loss = model.pass().loss;
                loss_max_abs = loss_max_abs.max((loss - f64::from(expected)).abs());
                model.step(learning_rate);
            }
            let param_max_rel = model.compare_parameters(&golden)?;
            Ok(GoldenVerdict::Training { file, device, loss_max_abs: finite(loss_max_abs), param_max_rel })
        }
        None => {
            let outcome = model.pass();
            let expected = golden.floats("output")?;
            let differences = outcome.output.iter().zip(&expected).map(|(a, b)| f64::from((a - b).abs()));
            if outcome.output.len() != expected.len() {
                let message = format!("`output` has {} values, not {}", expected.len(), outcome.output.len());
                return Err(golden.bad(&message));
            }
            let output_max_abs = finite(differences.fold(0.0, largest));
            let loss_abs = finite((outcome.loss - f64::from(golden.floats("loss")?[0])).abs());
            let grad_max_rel = model.compare_gradients(&golden)?;
            Ok(GoldenVerdict::Pass { file, device, output_max_abs, loss_abs, grad_max_rel })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_bound() {
        let verdict = |output, loss, grad| GoldenVerdict::Pass {
            file: "x".into(),
            device: "flex".into(),
            output_max_abs: output,
            loss_abs: loss,
            grad_max_rel: grad,
        };
        assert!(verdict(9e-6, 9e-6, 9e-5).is_met());
        assert!(!verdict(2e-5, 0.0, 0.0).is_met());
        assert!(!verdict(0.0, 2e-5, 0.0).is_met());
        assert!(!verdict(0.0, 0.0, 2e-4).is_met());
        assert!(!verdict(finite(f64::NAN), 0.0, 0.0).is_met());
        assert!(largest(f64::NAN, 1.0).is_nan() && largest(1.0, f64::NAN).is_nan());
    }
}
