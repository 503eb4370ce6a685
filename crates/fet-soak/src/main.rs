//! `fet-soak`: runs the parties of an experiment as processes, disturbs them, and counts faults.

#![expect(clippy::print_stdout, reason = "the program answers on standard output")]

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use clap::Parser;
    let arguments = fet_soak::Arguments::parse();
    if let Err(error) = ctrlc::set_handler(fet_soak::stop) {
        eprintln!("fet-soak: cannot listen for Ctrl-C: {error}");
        return ExitCode::from(2);
    }
    let say = &mut |line| println!("{line}");
    let good = match arguments.overhead {
        Some(pairs) => fet_soak::overhead(&arguments, pairs, say),
        None => fet_soak::work(&arguments, say).map(|tally| {
            println!("{}", tally.table());
            println!("{} of {} cases are as they should be", tally.good(), tally.cases());
            tally.good() == tally.cases()
        }),
    };
    match good {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("fet-soak: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    println!("fet-soak: needs a Unix");
    ExitCode::from(2)
}
