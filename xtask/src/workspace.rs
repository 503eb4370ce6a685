//! Where things lie, and how cargo is called: with LibTorch where it has been set up, without it elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Cargo's target folder, as cargo itself says.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let output = Command::new(cargo())
        .current_dir(root())
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(folder))
}

/// A cargo command in the workspace. LibTorch is linked in where it is set up.
pub(crate) struct Cargo {
    /// `--features fet/libtorch`, or nothing.
    features: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Cargo {
    /// With LibTorch where `cargo xtask libtorch` or the variable LIBTORCH provides it.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let Some(folder) = libtorch()? else { return Ok(Self::without_libtorch()) };
        let lib = folder.join("lib").display().to_string();
        let path = match std::env::var("LD_LIBRARY_PATH") {
            Ok(path) if !path.is_empty() => format!("{lib}:{path}"),
            _ => lib,
        };
        let mut variables = vec![
            ("LIBTORCH".to_string(), folder.display().to_string()),
            ("LD_LIBRARY_PATH".to_string(), path),
        ];
        if std::env::var_os("OMP_WAIT_POLICY").is_none() {
            // LibTorch's threads otherwise spin while they wait, which starves whoever shares the cores.
            variables.push(("OMP_WAIT_POLICY".to_string(), "passive".to_string()));
        }
        Ok(Self { features: vec!["--features".into(), "fet/libtorch".into()], variables })
    }

    /// The default build.
    pub(crate) fn without_libtorch() -> Self {
        Self { features: Vec::new(), variables: Vec::new() }
    }

    pub(crate) fn has_libtorch(&self) -> bool {
        !self.features.is_empty()
    }

    /// `cargo SUBCOMMAND` with the features; more arguments may follow.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(cargo());
        command.current_dir(root()).arg(subcommand);
        if subcommand != "fmt" {
            command.args(&self.features);
        }
        command.envs(self.variables.iter().cloned());
        command
    }

    /// Another program with LibTorch's environment.
    pub(crate) fn with_environment(&self, mut command: Command) -> Command {
        command.envs(self.variables.iter().cloned());
        command
    }
}

/// The folder of LibTorch: the variable LIBTORCH, else what `cargo xtask libtorch` has set up.
pub(crate) fn libtorch() -> anyhow::Result<Option<PathBuf>> {
    if let Some(folder) = std::env::var_os("LIBTORCH").map(PathBuf::from) {
        if !folder.join("lib").is_dir() {
            bail!(crate::InputError(format!("LIBTORCH must name a folder with `lib` in it; it is {}", folder.display())));
        }
        return Ok(Some(folder));
    }
    let folder = target()?.join("libtorch");
    Ok(folder.join("manifest.json").is_file().then_some(folder))
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string())
}
