//! Measures one link over a NATS server on this machine, with and without TLS.
//!
//! `FET_NATS=PATH cargo run --release -p fet-net --example measure` prints round-trip times of empty calls
//! (median and maximum of 100), and times of calls with requests of 1 and 64 MiB and empty answers. The last
//! line is the peak memory of this process, which contains both ends. Each figure is from the second pass;
//! the first pass warms up.

#![expect(clippy::print_stdout, reason = "the example prints its measurements")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fet_net::{Answer, Caller, Peer};
use support::Pair;
use support::server::{Running, program};

#[path = "../tests/it/support/mod.rs"]
mod support;

/// Gives empty answers.
struct Nothing;

impl Answer for Nothing {
    fn begins(&mut self, _: &Peer) {}

    fn answer(&mut self, _: Vec<u8>) -> Vec<u8> {
        Vec::new()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(program) = program() else { return Ok(()) };
    for tls in [false, true] {
        let pair = Pair::new();
        let server = Running::start(program.clone(), &pair, &[], tls, false);
        let (bank, shop) = (server.hub(&pair.bank.keys), server.hub(&pair.shop.keys));
        let settings = fet_net::Settings::default();
        let mut caller = pair.caller(bank.to_party(&pair.route)?, settings);
        let mut service = pair.service(shop.to_primary(&pair.route)?, settings);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| service.serve(&mut Nothing, &stop));
            let measured = measure(&mut caller, tls);
            stop.store(true, Ordering::Relaxed);
            measured
        })?;
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM is not available");
    println!("{peak}");
    Ok(())
}

fn measure(caller: &mut Caller, tls: bool) -> Result<(), Box<dyn std::error::Error>> {
    caller.wait_for(Duration::from_secs(10), &mut |_| {})?;
    for (size, count) in [(0, 100), (1 << 20, 20), (64 << 20, 5)] {
        let request = vec![7; size];
        let mut times = Vec::new();
        for _ in 0..2 * count {
            let began = Instant::now();
            caller.call(&request)?;
            times.push(began.elapsed());
        }
        let mut times = times.split_off(count);
        times.sort();
        let (median, slowest) = (times[count / 2], times[count - 1]);
        let rate = size as f64 / 1e6 / median.as_secs_f64();
        println!(
            "tls {tls}, {size} bytes: median {median:?}, slowest {slowest:?}, {rate:.0} MB/s; packet {:?}",
            caller.state().latency
        );
    }
    Ok(())
}
