//! `idx`: images and labels in the format of MNIST.

use std::path::PathBuf;

use fet_core::data::{DataError, DatasetContext, Folders, Labelled, Matrix, Source, Task};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::{bytes, classes};

/// Settings of `idx`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IdxSettings {
    /// Image files in the format of MNIST, read one after another; names may end in `.gz`. The program
    /// searches the experiment's folder, then the data folder.
    #[schemars(extend("x-rule" = "at least one file"))]
    pub images: Vec<String>,
    /// Label files of the images, in the same order.
    #[schemars(extend("x-rule" = "as many files as `images`"))]
    pub labels: Vec<String>,
}

impl Recipe<dyn Source> for IdxSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.images.len() != self.labels.len() {
            let rule = format!("must name as many files as `images` ({})", self.images.len());
            return Err(Violation::new("labels", rule, self.labels.len()));
        }
        Ok(())
    }

    fn build(&self, context: &DatasetContext<'_>) -> Result<Box<dyn Source>, Violation> {
        if self.images.is_empty() {
            return Err(Violation::new("images", "must name at least one file", "[]"));
        }
        Ok(Box::new(Idx { settings: self.clone(), folders: context.folders.clone() }))
    }
}

inventory::submit! {
    Plugin::<dyn Source>::new::<IdxSettings>("idx", "images and labels in the format of MNIST")
}

struct Idx {
    settings: IdxSettings,
    folders: Folders,
}

impl Source for Idx {
    fn files(&self) -> Vec<String> {
        [&self.settings.images[..], &self.settings.labels[..]].concat()
    }

    fn read(&self) -> Result<Labelled, DataError> {
        let (mut pixels, mut labels, mut columns) = (Vec::new(), Vec::new(), 0);
        for (image_file, label_file) in self.settings.images.iter().zip(&self.settings.labels) {
            let (path, shape, values) = read(&self.folders, image_file, "source.images", 3)?;
            let (label_path, _, classes) = read(&self.folders, label_file, "source.labels", 1)?;
            if shape[0] != classes.len() {
                let problem =
                    format!("has {} labels; {} has {} images", classes.len(), path.display(), shape[0]);
                return Err(DataError::new(label_path.display(), problem));
            }
            let size = shape[1] * shape[2];
            if columns != 0 && columns != size {
                let problem = format!("has images of {size} pixels; the previous file has {columns}");
                return Err(DataError::new(path.display(), problem));
            }
            columns = size;
            pixels.extend(values.into_iter().map(f32::from));
            labels.extend(classes.into_iter().map(f64::from));
        }
        let classes = classes(Task::Multiclass, &labels, |row| format!("label {row} (from 0)"))?;
        Ok(Labelled { task: Task::Multiclass, classes, features: Matrix::new(columns, pixels), labels })
    }
}

/// Reads an idx file of unsigned bytes with `dimensions` dimensions. Returns its path, shape and values.
fn read(
    folders: &Folders,
    file: &str,
    setting: &str,
    dimensions: usize,
) -> Result<(PathBuf, Vec<usize>, Vec<u8>), DataError> {
    let (path, bytes) = bytes(folders, file, setting)?;
    let bad = |problem: String| DataError::new(path.display(), problem);
    let header = 4 + 4 * dimensions;
    let magic = [0, 0, 8, dimensions as u8];
    if !bytes.starts_with(&magic) {
        let found = &bytes[..bytes.len().min(4)];
        return Err(bad(format!(
            "is not an idx file of {dimensions} dimensions: it begins with {found:?}, not {magic:?}"
        )));
    }
    if bytes.len() < header {
        return Err(bad(format!("is cut off: it has {} bytes; its header alone has {header}", bytes.len())));
    }
    let sizes = bytes[4..header].as_chunks::<4>().0;
    let shape: Vec<usize> = sizes.iter().map(|size| u32::from_be_bytes(*size) as usize).collect();
    let expected = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    if expected != Some(bytes.len() - header) {
        return Err(bad(format!("its header announces {shape:?} values; it has {}", bytes.len() - header)));
    }
    Ok((path, shape, bytes[header..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dimensions: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, dimensions.len() as u8];
        bytes.extend(dimensions.iter().flat_map(|d| d.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    fn source(images: &[u8], labels: &[u8]) -> Result<Labelled, DataError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("i"), images).expect("writable");
        std::fs::write(folder.path().join("l"), labels).expect("writable");
        let settings =
            IdxSettings { images: vec!["i".into(), "i".into()], labels: vec!["l".into(), "l".into()] };
        Idx { settings, folders: folder.path().into() }.read()
    }

    #[test]
    fn files_are_read_one_after_another() {
        let data = source(&file(&[2, 1, 2], &[1, 2, 3, 255]), &file(&[2], &[0, 4])).expect("good files");
        assert_eq!(data.features.values(), [1.0, 2.0, 3.0, 255.0, 1.0, 2.0, 3.0, 255.0]);
        assert_eq!((data.labels, data.classes), (vec![0.0, 4.0, 0.0, 4.0], 5));
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = file(&[2, 1, 2], &[1, 2, 3, 4]);
        let check = |images: &[u8], labels: &[u8], part: &str| {
            let error = source(images, labels).expect_err("refused").to_string();
            assert!(error.contains(part), "{part} in {error}");
        };
        check(&good[..good.len() - 1], &file(&[2], &[0, 1]), "announces [2, 1, 2] values; it has 3");
        check(b"PK\x03\x04", &file(&[2], &[0, 1]), "not an idx file of 3 dimensions");
        check(b"", &file(&[2], &[0, 1]), "not an idx file");
        check(&good[..7], &file(&[2], &[0, 1]), "is cut off: it has 7 bytes; its header alone has 16");
        check(&good, &file(&[3], &[0, 1, 2]), "has 3 labels");
        check(&good, &good, "not an idx file of 1 dimensions");
    }
}
