//! Standard output that is closed after a line, closed from the beginning, or full.

use crate::abuse::script::{Base, Expect, Script, Stdout, Step};

use Expect::{Accepted, Any, Either, Quiet};

const AREA: &str = "pipe";

/// Commands that print. A question for `--batch` is on standard input.
const COMMANDS: &[&str] = &[
    "--help",
    "--version",
    "help",
    "run --help",
    "link --help",
    "show shops.toml",
    "show shops.toml --json",
    "list",
    "list linker",
    "list method",
    "list attack",
    "list data",
    "list data.source",
    "data show shops.csv",
    "data check shops.toml",
    "link shops.csv streets.csv --keys lon,lat --out l.csv",
    "predict result --rows shops.csv",
    "explain result --rows 5 --repeats 1",
    "plot result",
    "account --noise 4 --delta 1e-5",
    "account --epsilon 1 --delta 1e-5 --json",
    "attack images.toml --attack faulty-party",
    "run shops.toml --out out --log json",
];

pub(crate) fn cases() -> Vec<Script> {
    let mut cases = Vec::new();
    let case = |name: String, step: Step| Script::new(AREA, name, Base::Finished).step(step);
    for command in COMMANDS {
        let one = Step::new(*command, Quiet).stdout(Stdout::OneLine);
        let one = if command.starts_with("run shops") { one.check("test -f out/report.json") } else { one };
        cases.push(case(format!("closed after a line: {command}"), one));
        let closed = Step::new(*command, Either).before("exec >&-;");
        cases.push(case(format!("closed: {command}"), closed));
        // The argument parser prints the help.
        let help = command.contains("help") || command.contains("--version");
        let full =
            Step::new(*command, if help || command.starts_with("run") { Any } else { Expect::Code(75) })
                .before("exec > /dev/full;");
        cases.push(case(format!("full: {command}"), full.names("output|stdout|space")));
    }
    for command in [
        "run shops.toml --out out",
        "data show nosuch.csv",
        "--nosuch",
        "link --help",
        "run long.toml --out out",
    ] {
        let expect = if command.contains("nosuch") { Expect::Code(2) } else { Accepted };
        let full = Step::new(command, expect).before("exec 2> /dev/full;");
        let closed = Step::new(command, expect).before("exec 2>&-;");
        // These commands cannot print an error.
        for (name, step) in [("full", full), ("closed", closed)] {
            let step = if command.contains("nosuch") { Step { expect, ..step } } else { step };
            cases.push(case(format!("standard error {name}: {command}"), step));
        }
    }
    let questions = "{\"set\": [\"train.epochs=2\"], \"seed\": 1}\n".repeat(200);
    let batch = Step::new("show shops.toml --batch", Quiet).stdout(Stdout::OneLine).input(questions);
    cases.push(case("closed after a line: show --batch".to_string(), batch));
    cases
}
