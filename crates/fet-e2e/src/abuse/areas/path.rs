//! Paths of data, experiments and run folders that have the wrong type: folders, FIFOs, devices, circular
//! links.

use crate::abuse::script::{Base, Expect, Script, Step};

use Expect::{Accepted, Either, Refused};

const AREA: &str = "path";

/// Name, preparation of the path `it`, and expected result of a command that reads it.
const PLACES: &[(&str, &str, Expect)] = &[
    ("a folder", "mkdir it", Refused),
    ("a FIFO", "mkfifo it", Refused),
    ("a link to itself", "ln -s it it", Refused),
    ("links in a circle", "ln -s that it; ln -s it that", Refused),
    ("a link to nothing", "ln -s nosuch it", Refused),
    ("a link to a folder", "ln -s tmp it", Refused),
    ("a link to a FIFO", "mkfifo pipe; ln -s pipe it", Refused),
    ("missing", ":", Refused),
    ("an endless device", "ln -s /dev/zero it", Refused),
    ("an empty device", "ln -s /dev/null it", Refused),
    ("a full device", "ln -s /dev/full it", Refused),
    ("memory", "ln -s /proc/self/mem it", Refused),
    ("a link to the file", "ln -s $FILE it", Accepted),
    ("many links to the file", "ln -s $FILE a; ln -s a b; ln -s b c; ln -s c it", Accepted),
    ("unreadable", "cp -r $FILE it; chmod 000 it", Either),
];

/// Name and arguments of a command, and the file that `it` replaces.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("primary", "run shops.toml --out out --set data.primary.file=it", "shops.csv"),
    ("secondary", "run other.toml --out out", "streets.csv"),
    ("check", "data check other.toml", "streets.csv"),
    ("data show", "data show it", "shops.csv"),
    ("link, primary", "link it streets.csv --keys lon,lat --out l.csv", "shops.csv"),
    ("link, secondary", "link shops.csv it --keys lon,lat --out l.csv", "streets.csv"),
    ("link, truth", "link shops.csv streets.csv --keys lon,lat --truth it --out l.csv", "truth.csv"),
    ("predict", "predict result --rows it", "shops.csv"),
    ("experiment", "run it --out out", "shops.toml"),
    ("extends", "run extending.toml --out out", "shops.toml"),
    ("images", "run images.toml --out out --set 'data.source.images=[\"it\"]'", "images.idx"),
    ("libsvm", "run sparse.toml --out out --set data.source.file=it", "sparse.svm"),
    ("split", "run shops.toml --out out --set split.kind=file --set split.file=it", "parts.csv"),
    ("run of predict", "predict it --rows shops.csv", "result"),
    ("run of plot", "plot it", "result"),
    ("run of explain", "explain it --rows 5 --repeats 1", "result"),
    ("from", "run shops.toml --out next --from it", "result"),
];

const EXTENDING: (&str, &str) = ("extending.toml", "extends = \"it\"\n");

/// Names of experiments and tables that shells and terminals misinterpret.
const NAMES: &[&str] = &[
    "a b.toml",
    "ä名.toml",
    "a'b.toml",
    "a\nb.toml",
    "a\u{1b}[31mb.toml",
    "a=b.toml",
    "a,b.toml",
    "%s.toml",
    "..toml",
    "toml",
];

pub(crate) fn cases() -> Vec<Script> {
    let mut cases = Vec::new();
    let other = crate::abuse::base::SHOPS.replace("streets.csv", "it");
    let truth = (0..60).fold("a,b\n".to_string(), |text, row| format!("{text}{row},{row}\n"));
    let parts = (0..60).fold("part\n".to_string(), |text, row| {
        text + ["train", "train", "train", "validation", "test"][row % 5] + "\n"
    });
    for (by, command, file) in COMMANDS {
        for (name, prepare, expect) in PLACES {
            let run = *file == "result";
            if run && name.contains("a folder") && *expect == Refused {
                continue;
            }
            let step = Step::new(*command, *expect)
                .prepare(format!("FILE={file}; {prepare}"))
                .names("it|extending|model.safetensors")
                .seconds(3);
            let step = if by.contains("explain") { step.writes_to("result") } else { step };
            let mut case = Script::new(AREA, format!("{name}: {by}"), Base::Finished).step(step);
            let files = [("other.toml", &other[..]), ("truth.csv", &truth), ("parts.csv", &parts), EXTENDING];
            for (name, text) in files.into_iter().filter(|(name, _)| command.contains(name) || file == name) {
                case = case.file(name, text);
            }
            // Does not follow a link, because chmod would change the link's target.
            cases.push(case.cleanup("test -L it || chmod -R u+rwx it 2>/dev/null"));
        }
    }
    for name in NAMES {
        let word = crate::runner::quoted(name);
        let good = Step::new(format!("run {word} --out out"), Either).names("toml");
        let title = name.escape_debug().to_string();
        cases.push(
            Script::on_tables(AREA, format!("a name: {title}"), good).file(*name, crate::abuse::base::SHOPS),
        );
        let bad = Step::new(format!("run {word} --out out"), Refused).names("toml");
        cases.push(Script::on_tables(AREA, format!("a missing name: {title}"), bad));
    }
    let bytes = Step::new("run \"$(printf 'a\\377b')\" --out out", Refused).names("a");
    cases.push(Script::on_tables(AREA, "a name that is not text", bytes));
    let long = Step::new(format!("run {} --out out", "n".repeat(300)), Refused);
    cases.push(Script::on_tables(AREA, "a name of 300 characters", long));
    cases
}
