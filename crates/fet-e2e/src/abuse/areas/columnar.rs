//! Invalid Parquet and Arrow files: a build with support for them must refuse them, and so must a build
//! without.

use crate::abuse::script::{Base, Expect, Script, Step};

const AREA: &str = "columnar";

const CONTENTS: &[(&str, &[u8])] = &[
    ("nothing", b""),
    ("text", b"lon,lat\n1,2\n"),
    ("magic alone", b"PAR1"),
    ("magic twice", b"PAR1PAR1"),
    ("a huge footer", b"PAR1\xff\xff\xff\x7fPAR1"),
    ("a footer beyond the file", b"PAR1\x00\x10\x00\x00PAR1"),
    ("Arrow magic", b"ARROW1\0\0"),
    ("Arrow with a huge footer", b"ARROW1\0\0\xff\xff\xff\x7fARROW1"),
    ("a negative footer", b"ARROW1\0\0\xff\xff\xff\xffARROW1"),
];

pub(crate) fn cases() -> Vec<Script> {
    let refused = |command: String, names: &str| Step::new(command, Expect::Refused).names(names);
    let mut cases = Vec::new();
    for end in ["parquet", "arrow", "feather", "ipc"] {
        for (name, bytes) in CONTENTS {
            let file = format!("t.{end}");
            let case = |by: &str, base, command: String| {
                Script::new(AREA, format!("{name}.{end}: {by}"), base)
                    .step(refused(command, &file))
                    .file(&file, *bytes)
            };
            cases.push(case("data show", Base::Tables, format!("data show {file}")));
            let run = format!("run shops.toml --out out --set data.primary.file={file}");
            cases.push(case("run", Base::Tables, run));
            let link = format!("link {file} streets.csv --keys lon,lat --out l.csv");
            cases.push(case("link", Base::Tables, link));
            cases.push(case("predict", Base::Finished, format!("predict result --rows {file}")));
        }
    }
    let outputs = ["l.parquet", "l.arrow", "l.feather", "l.xlsx"].map(|out| {
        let command = format!("link shops.csv streets.csv --keys lon,lat --out {out}");
        Script::on_tables(AREA, format!("link to {out}"), refused(command, out))
    });
    cases.extend(outputs);
    cases
}
