//! Sources of one table: idx files, sparse rows in LIBSVM format, and CSV.

use crate::abuse::base::{images, labels, sparse};
use crate::abuse::script::{Expect, Script, Step};
use crate::mutate;

use Expect::{Accepted, Any, Either, Refused};

const AREA: &str = "source";

/// Patch of an idx file: offset and new bytes.
type Patch = (usize, &'static [u8]);

/// Name, file, patch, remaining length of the file (0: all), and expected result.
const IDX: &[(&str, &str, Patch, usize, Expect)] = &[
    ("images as they are", "images.idx", (0, &[]), 0, Accepted),
    ("images: the first byte set", "images.idx", (0, &[1]), 0, Refused),
    ("images: floats", "images.idx", (2, &[0x0d]), 0, Refused),
    ("images: signed bytes", "images.idx", (2, &[0x09]), 0, Refused),
    ("images: no dimension", "images.idx", (3, &[0]), 0, Refused),
    ("images: one dimension", "images.idx", (3, &[1]), 0, Refused),
    ("images: four dimensions", "images.idx", (3, &[4]), 0, Refused),
    ("images: 255 dimensions", "images.idx", (3, &[255]), 0, Refused),
    ("images: the greatest count", "images.idx", (4, &[255; 4]), 0, Refused),
    ("images: the greatest counts", "images.idx", (4, &[255; 12]), 0, Refused),
    (
        "images: counts whose product overflows",
        "images.idx",
        (4, &[128, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 4]),
        0,
        Refused,
    ),
    ("images: a count too many", "images.idx", (7, &[41]), 0, Refused),
    ("images: a count too few", "images.idx", (7, &[39]), 0, Refused),
    ("images: no count", "images.idx", (7, &[0]), 0, Refused),
    ("images: no pixels", "images.idx", (11, &[0]), 0, Refused),
    ("images: cut in the magic", "images.idx", (0, &[]), 3, Refused),
    ("images: cut in the counts", "images.idx", (0, &[]), 9, Refused),
    ("images: cut behind the counts", "images.idx", (0, &[]), 16, Refused),
    ("images: one byte cut", "images.idx", (0, &[]), 655, Refused),
    ("labels: the magic of images", "labels.idx", (3, &[3]), 0, Refused),
    ("labels: the greatest count", "labels.idx", (4, &[255; 4]), 0, Refused),
    ("labels: a count too many", "labels.idx", (7, &[41]), 0, Refused),
    ("labels: one byte cut", "labels.idx", (0, &[]), 47, Refused),
    ("labels: class 255", "labels.idx", (9, &[255]), 0, Either),
    ("labels: one class", "labels.idx", (8, &[1; 40]), 0, Refused),
    ("labels: cut to nothing", "labels.idx", (0, &[]), 1, Refused),
];

/// Line inserted before the other lines, expected result, and text that a refusal must contain.
const SPARSE: &[(&str, Expect, &str)] = &[
    ("+1 1:0.5", Accepted, ""),
    ("", Either, "sparse.svm"),
    ("# a comment", Either, "sparse.svm"),
    ("+1 1:0.5 # a comment", Either, "sparse.svm"),
    ("+1 qid:3 1:0.5", Either, "sparse.svm"),
    ("+1", Accepted, ""),
    ("+1 0:0.5", Refused, "line 1"),
    ("+1 -1:0.5", Refused, "line 1"),
    ("+1 1.5:0.5", Refused, "line 1"),
    ("+1 x:0.5", Refused, "line 1"),
    ("+1 :0.5", Refused, "line 1"),
    ("+1 1:", Refused, "line 1"),
    ("+1 1", Refused, "line 1"),
    ("+1 1:0.5:3", Refused, "line 1"),
    ("+1 1:x", Refused, "line 1"),
    ("+1 1:nan", Refused, "line 1"),
    ("+1 1:inf", Refused, "line 1"),
    ("+1 1:1e300", Refused, "line 1"),
    ("+1 1:1e400", Refused, "line 1"),
    ("+1 1:3e38", Either, "line 1|sparse.svm"),
    ("+1 1:0.5 1:0.6", Refused, "line 1"),
    ("+1 2:0.5 1:0.6", Either, "line 1"),
    ("+1 100000000:1", Refused, "memory|column|index|sparse.svm"),
    ("+1 1000000000:1", Refused, "memory|column|index|sparse.svm"),
    ("+1 4294967295:1", Refused, "memory|column|index|sparse.svm"),
    ("+1 4294967296:1", Refused, "memory|column|index|sparse.svm"),
    ("+1 18446744073709551615:1", Refused, "memory|column|index|sparse.svm"),
    ("+1 18446744073709551616:1", Refused, "line 1"),
    ("+1 99999999999999999999999:1", Refused, "line 1"),
    ("nan 1:0.5", Refused, "line 1"),
    ("inf 1:0.5", Refused, "line 1"),
    ("1e300 1:0.5", Refused, "row 0"),
    ("yes 1:0.5", Refused, "line 1"),
    ("3 1:0.5", Refused, "class|label|sparse.svm"),
    (" +1 1:0.5", Either, "line 1"),
    ("+1\t1:0.5", Either, "line 1"),
    ("+1,1:0.5", Refused, "line 1"),
    ("\u{feff}+1 1:0.5", Either, "line 1|sparse.svm"),
    ("+1 1:0.5\0", Refused, "line 1"),
    ("+1 1:\u{1b}[31m5", Refused, "line 1"),
];

/// Experiment, setting of its source, expected result, and text that a refusal must contain.
const SETTINGS: &[(&str, &str, Expect, &str)] = &[
    ("sparse.toml", "data.source.columns=1", Refused, "columns"),
    ("sparse.toml", "data.source.columns=10", Accepted, ""),
    ("sparse.toml", "data.source.columns=1000000000000", Refused, "columns|memory"),
    ("sparse.toml", "data.source.columns=9223372036854775807", Refused, "columns|memory"),
    ("sparse.toml", "data.source.task=\"regression\"", Either, "task"),
    ("sparse.toml", "data.source.file=\"images.idx\"", Refused, "images.idx"),
    ("sparse.toml", "data.source.file=\"shops.csv\"", Refused, "shops.csv"),
    ("sparse.toml", "data.source.file=\"\"", Refused, "file"),
    ("sparse.toml", "data.source.file=\"nosuch\"", Refused, "nosuch"),
    ("images.toml", "data.source.images=[]", Refused, "images|labels"),
    ("images.toml", "data.source.images=[\"labels.idx\"]", Refused, "labels.idx"),
    ("images.toml", "data.source.labels=[\"images.idx\"]", Refused, "images.idx"),
    ("images.toml", "data.source.images=[\"images.idx\", \"images.idx\"]", Refused, "labels|images"),
    ("images.toml", "data.source.images=[\"shops.csv\"]", Refused, "shops.csv"),
    ("images.toml", "data.parties=0", Refused, "parties"),
    ("images.toml", "data.parties=1", Either, "parties"),
    ("images.toml", "data.parties=17", Refused, "parties|columns"),
    ("images.toml", "data.parties=1000000000", Refused, "parties|columns"),
    ("images.toml", "data.key_dims=0", Refused, "key_dims"),
    ("images.toml", "data.key_dims=17", Refused, "key_dims|columns"),
    ("images.toml", "data.key_noise=-1", Refused, "key_noise"),
    ("images.toml", "data.key_noise=1e300", Any, "key_noise"),
    ("images.toml", "data.imbalance=-1", Either, "imbalance"),
    ("images.toml", "data.rows=1", Refused, "rows|record"),
    (
        "images.toml",
        "data.source={ kind = \"csv\", file = \"shops.csv\", label = \"busy\" }",
        Refused,
        "busy|task",
    ),
    (
        "images.toml",
        "data.source={ kind = \"csv\", file = \"shops.csv\", label = \"nosuch\" }",
        Refused,
        "nosuch",
    ),
    (
        "images.toml",
        "data.source={ kind = \"csv\", file = \"shops.csv\", label = \"\" }",
        Refused,
        "label|column",
    ),
    ("images.toml", "data.source={ kind = \"csv\", file = \"\", label = \"busy\" }", Refused, "file"),
    ("images.toml", "data.source={ kind = \"csv\", file = \"tmp\", label = \"busy\" }", Refused, "tmp"),
    (
        "images.toml",
        "data.source={ kind = \"csv\", file = \"streets.csv\", label = \"lanes\", drop = [\"nosuch\"] }",
        Refused,
        "nosuch",
    ),
    (
        "images.toml",
        "data.source={ kind = \"csv\", file = \"streets.csv\", label = \"lanes\", drop = [\"lanes\"] }",
        Refused,
        "lanes",
    ),
];

pub(crate) fn cases(seed: u64) -> Vec<Script> {
    let run =
        |file: &str, expect, names: &str| Step::new(format!("run {file} --out out"), expect).names(names);
    let original = |file: &str| if file == "images.idx" { images() } else { labels() };
    let idx = IDX.iter().map(|(name, file, (at, patch), length, expect)| {
        let mut bytes = original(file);
        bytes[*at..at + patch.len()].copy_from_slice(patch);
        bytes.truncate(if *length == 0 { bytes.len() } else { *length });
        Script::on_tables(AREA, *name, run("images.toml", *expect, ".idx|label")).file(*file, bytes)
    });
    let longer = ["images.idx", "labels.idx"].map(|file| {
        let bytes = [original(file), b"more".to_vec()].concat();
        Script::on_tables(AREA, format!("{file} with bytes behind"), run("images.toml", Refused, file))
            .file(file, bytes)
    });
    let rows = SPARSE.iter().map(|(line, expect, names)| {
        let step = run("sparse.toml", *expect, names);
        Script::on_tables(AREA, format!("libsvm: {}", line.escape_debug()), step)
            .file("sparse.svm", format!("{line}\n{}", sparse()))
    });
    let contents = [
        ("nothing", Vec::new()),
        ("line ends", b"\n\n\n".to_vec()),
        ("bytes that are not text", vec![0xff; 100]),
        ("UTF-16", sparse().encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("a long word", vec![b'1'; 1_000_000]),
        ("one class", sparse().replace('-', "+").into_bytes()),
    ];
    let contents = contents.map(|(name, bytes)| {
        Script::on_tables(
            AREA,
            format!("libsvm: {name}"),
            run("sparse.toml", Refused, "sparse.svm|class|labels"),
        )
        .file("sparse.svm", bytes)
    });
    let settings = SETTINGS.iter().map(|(file, set, expect, names)| {
        let command = format!("run {file} --out out --set '{set}'");
        Script::on_tables(AREA, format!("{file} {set}"), Step::new(command, *expect).names(*names))
    });
    let mutated = (0..90u64).map(|number| {
        let mut rng = mutate::generator(seed, AREA, number);
        let (experiment, file, bytes) = match number % 3 {
            0 => ("images.toml", "images.idx", images()),
            1 => ("images.toml", "labels.idx", labels()),
            _ => ("sparse.toml", "sparse.svm", sparse().into_bytes()),
        };
        let bytes = mutate::bytes(&bytes, &mut rng);
        Script::on_tables(AREA, format!("change {number}"), run(experiment, Either, "")).file(file, bytes)
    });
    idx.chain(longer).chain(rows).chain(contents).chain(settings).chain(mutated).collect()
}
