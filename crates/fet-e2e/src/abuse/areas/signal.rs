//! Signals during a command: a resumed run must give the same predictions, and other commands must leave no
//! files.

use std::time::Duration;

use rand::RngExt;
use rustix::process::Signal;

use crate::abuse::judge::TRY_AGAIN;
use crate::abuse::script::{Base, Expect, Script, Send, Step};
use crate::mutate;

use Expect::{Accepted, Code, Signalled};

const AREA: &str = "signal";
const RUN: &str = "run long.toml --out out";

const SIGNALS: [(&str, Signal); 4] =
    [("INT", Signal::INT), ("TERM", Signal::TERM), ("HUP", Signal::HUP), ("KILL", Signal::KILL)];

/// Name and arguments of commands that run long enough to receive a signal, and the maximum delay of the
/// signal.
const OTHERS: &[(&str, &str, u64)] = &[
    ("link", "link names.csv names.csv --keys name --linker edit --set k=3 --out l.csv", 400),
    (
        "link, cached",
        "link names.csv names.csv --keys name --linker edit --set k=3 --out l.csv --cache cache",
        400,
    ),
    ("explain", "explain reference --rows 0 --repeats 50", 150),
    ("attack", "attack images.toml --attack membership", 100),
    ("predict", "predict reference --rows shops.csv --out p.csv", 30),
    ("plot", "plot reference --out plots", 20),
    ("data check", "data check long.toml", 10),
];

pub(crate) fn cases(seed: u64) -> Vec<Script> {
    let mut rng = mutate::generator(seed, AREA, 0);
    let mut cases = Vec::new();
    let goes_on = || Step::new(RUN, Accepted);
    for (name, signal) in SIGNALS {
        for number in 0..8u32 {
            // Three of the signals come before the first epoch, the others after it.
            let shown = if number < 3 { "" } else { "epoch " };
            let after = Duration::from_micros(rng.random_range(0..if number < 3 { 30_000 } else { 250_000 }));
            let send = Send { signal, shown, after, times: 1 };
            let case = Script::new(AREA, format!("{name} in a run, {number}"), Base::Reference);
            let case = case.step(Step::new(RUN, Signalled).send(send)).step(goes_on());
            cases.push(case.same("out/predictions.csv", "reference/predictions.csv"));
        }
        for (by, command, most) in OTHERS {
            let after = Duration::from_millis(rng.random_range(0..=*most));
            let send = Send { signal, shown: "", after, times: 1 };
            let step = Step::new(*command, Signalled).send(send);
            cases.push(Script::new(AREA, format!("{name} in {by}"), Base::Reference).step(step).slow());
        }
    }
    for (name, signal) in &SIGNALS[..2] {
        let send = Send { signal: *signal, shown: "epoch ", after: Duration::from_millis(20), times: 20 };
        let case = Script::new(AREA, format!("{name} twenty times"), Base::Reference);
        let case = case.step(Step::new(RUN, Signalled).send(send)).step(goes_on());
        cases.push(case.same("out/predictions.csv", "reference/predictions.csv"));
    }
    // Kills the run repeatedly, at different places of an epoch.
    let mut case = Script::new(AREA, "KILL, eight times over", Base::Reference);
    for _ in 0..8 {
        let after = Duration::from_micros(rng.random_range(0..60_000));
        let send = Send { signal: Signal::KILL, shown: "epoch ", after, times: 1 };
        case = case.step(Step::new(RUN, Signalled).send(send));
    }
    cases.push(case.step(goes_on()).same("out/predictions.csv", "reference/predictions.csv"));
    let taken = "\"$FET\" run long.toml --out out --set train.epochs=60000 2> tmp/err & echo $! > tmp/pid; \
                 for i in $(seq 300); do grep -q 'epoch ' tmp/err && break; sleep 0.02; done";
    for (name, command, expect, names) in [
        (
            "the folder is in use: run",
            "run long.toml --out out --set train.epochs=60000",
            Code(TRY_AGAIN),
            "out",
        ),
        ("the folder is in use: other settings", "run long.toml --out out", Code(TRY_AGAIN), "out"),
    ] {
        let step = Step::new(command, expect).prepare(taken).names(names);
        let stopped = Script::new(AREA, name, Base::Reference).step(step);
        cases.push(stopped.cleanup("kill $(cat tmp/pid); sleep 0.2").slow());
    }
    cases
}
