//! Output paths: devices, FIFOs, links, folders, full disks. A command must not destroy their previous
//! contents.

use crate::abuse::script::{Base, Expect, Script, Step};

use Expect::{Accepted, Any, Either, Refused, Stopped};

const AREA: &str = "output";

/// Name, preparation, output path, expected results for a file and for a folder, and a check for an accepted
/// command.
type OutputCase = (&'static str, &'static str, &'static str, Expect, Expect, &'static str);

const PLACES: &[OutputCase] = &[
    ("a new file", ":", "new.csv", Accepted, Accepted, ""),
    ("a file that is there", "echo old > there.csv", "there.csv", Accepted, Refused, ""),
    ("a folder", "mkdir -p there", "there", Refused, Accepted, ""),
    ("a full folder", "mkdir -p there; echo mine > there/x", "there", Refused, Either, "test -f there/x"),
    ("a folder with a slash", "mkdir -p there", "there/", Refused, Accepted, ""),
    ("a name with a slash", ":", "new/", Refused, Accepted, ""),
    ("a missing parent", ":", "no/such/new.csv", Refused, Either, ""),
    ("below a file", ":", "shops.csv/new.csv", Refused, Refused, ""),
    ("a device that takes all", "mknod dev c 1 3", "dev", Either, Refused, "test ! -f dev"),
    ("a device that is full", "mknod dev c 1 7", "dev", Stopped, Refused, ""),
    (
        "a FIFO",
        "mkfifo pipe; (timeout 10 cat pipe > /dev/null 2>&1 &)",
        "pipe",
        Either,
        Refused,
        "test -p pipe",
    ),
    (
        "a link to a file",
        "echo old > target.csv; ln -s target.csv link.csv",
        "link.csv",
        Either,
        Refused,
        "test -L link.csv",
    ),
    ("a link to a folder", "mkdir target; ln -s target link", "link", Refused, Either, "test -L link"),
    ("a link to nothing", "ln -s target.csv link.csv", "link.csv", Either, Either, "test -L link.csv"),
    ("a link to itself", "ln -s link.csv link.csv", "link.csv", Refused, Refused, ""),
    ("a link to an input", "ln -s shops.csv link.csv", "link.csv", Refused, Refused, ""),
    ("a hard link to an input", "ln shops.csv hard.csv", "hard.csv", Either, Refused, ""),
    ("an input", ":", "shops.csv", Refused, Refused, ""),
    ("an input by another path", ":", "tmp/../shops.csv", Refused, Refused, ""),
    ("unwritable", ":", "/proc/new.csv", Refused, Refused, ""),
    ("an unwritable file", ":", "/proc/version", Refused, Refused, ""),
    ("no name", ":", "", Refused, Refused, ""),
    ("a blank", ":", " ", Either, Either, ""),
    ("a dot", ":", ".", Refused, Either, ""),
    ("two dots", "mkdir deep", "deep/..", Refused, Either, ""),
    ("the root", ":", "/", Refused, Either, ""),
    ("a control character", ":", "a\u{1b}[31mb.csv", Either, Either, ""),
    ("a line end", ":", "a\nb.csv", Either, Either, ""),
    ("an option", ":", "--out", Refused, Refused, ""),
    ("a minus and a letter", ":", "-x", Refused, Refused, ""),
    ("gzip", ":", "new.csv.gz", Either, Either, "test -d new.csv.gz || gzip -t new.csv.gz"),
    ("tabs", ":", "new.tsv", Either, Either, "test -d new.tsv || grep -q \"$(printf '\\t')\" new.tsv"),
    ("JSON", ":", "new.json", Refused, Either, ""),
    ("Excel", ":", "new.xlsx", Refused, Either, ""),
    ("no ending", ":", "new", Either, Accepted, ""),
];

/// Name and arguments of a command, true if it writes a folder, and the base folder.
const COMMANDS: &[(&str, &str, bool, Base)] = &[
    ("link", "link shops.csv streets.csv --keys lon,lat --set k=3", false, Base::Tables),
    ("predict", "predict result --rows shops.csv", false, Base::Finished),
    ("run", "run shops.toml", true, Base::Tables),
    ("explain", "explain result --rows 5 --repeats 1", true, Base::Finished),
    ("plot", "plot result", true, Base::Finished),
];

pub(crate) fn cases() -> Vec<Script> {
    let mut cases = Vec::new();
    for (by, command, folder, base) in COMMANDS {
        for (name, prepare, place, of_file, of_folder, check) in PLACES {
            if *folder && *place == "/" {
                continue;
            }
            let expect = match (*by, *of_folder) {
                // `explain` writes to an existing folder.
                ("explain", Accepted) => Either,
                _ if *folder => *of_folder,
                _ => *of_file,
            };
            let step = Step::new(format!("{command} --out {}", crate::runner::quoted(place)), expect);
            let step =
                step.prepare(*prepare).names(format!("{}|--out", place.trim())).check(*check).writes_to(
                    match *name {
                        "a link to a folder" => "target",
                        "a link to a file" | "a link to nothing" => "target.csv",
                        _ => place,
                    },
                );
            cases.push(Script::new(AREA, format!("{name}: {by}"), *base).step(step));
        }
    }
    for (by, command, folder, base) in COMMANDS.iter().filter(|(by, ..)| *by != "explain") {
        let out = if *folder { "out" } else { "out.csv" };
        for blocks in [2, 4, 8, 16, 32, 64, 128] {
            // Blocks have 512 bytes or 1 KiB, depending on the shell.
            let step = Step::new(format!("{command} --out {out}"), Any).names("out");
            let step = step.before(format!("trap '' XFSZ; ulimit -f {blocks};"));
            let case = Script::new(AREA, format!("files of {blocks} blocks at most: {by}"), *base).step(step);
            let again = Step::new(format!("{command} --out {out}"), Accepted);
            cases.push(case.step(again).slow());
        }
        for left in [0, 5_000, 20_000, 60_000, 120_000] {
            let full = format!(
                "mkdir disk && mount -t tmpfs -o size=1m tmpfs disk && \
                 head -c $((1048576 - {left})) /dev/zero > disk/fill 2>/dev/null"
            );
            let step = Step::new(format!("{command} --out disk/{out}"), Any).prepare(full).names("disk");
            let again = Step::new(format!("{command} --out disk/{out}"), Accepted).prepare("rm -f disk/fill");
            let case =
                Script::new(AREA, format!("a disk with {left} bytes: {by}"), *base).step(step).step(again);
            cases.push(case.cleanup("umount disk 2>/dev/null"));
        }
        let step = Step::new(format!("{command} --out disk/{out}"), Refused).names("disk");
        let step = step.prepare("mkdir disk && mount -t tmpfs -o ro,size=1m tmpfs disk || ln -s /proc disk");
        let case = Script::new(AREA, format!("a disk that is read only: {by}"), *base).step(step);
        cases.push(case.cleanup("umount disk 2>/dev/null"));
    }
    let minus = |name: &str, command: &str, says| {
        Script::new(AREA, name, Base::Finished)
            .step(Step::new(command, Accepted).says(says).check("test ! -e -"))
    };
    cases.push(minus(
        "standard output: link",
        "link shops.csv streets.csv --keys lon,lat --out -",
        "primary_row,secondary_row",
    ));
    cases.push(minus(
        "standard output: predict",
        "predict result --rows shops.csv --out -",
        "row,prediction",
    ));
    cases
}
