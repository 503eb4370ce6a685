//! Messages over paths of various speeds, in simulated time: a path has a queue without limit, as a connection to a
//! server has, and sends its packets in order.

use super::*;
use crate::receiving::Receiving;
use crate::wire::{CHUNK, LARGEST_SENT, Purpose};

/// Path from a sender to a receiver. Reports return at once after the delay.
struct Path {
    /// Bytes per second.
    rate: f64,
    /// Delay in each direction.
    delay: Duration,
}

/// Figures of a message that has arrived.
#[derive(Debug)]
struct Journey {
    /// Time until the sender knows that the message has arrived.
    took: Duration,
    /// Number of chunks sent, including repetitions.
    sent: u64,
    /// Longest time that a packet waited behind others, as a heartbeat would.
    waited: Duration,
    /// Longest time without a new chunk at the receiver.
    stalled: Duration,
}

/// Sends messages of `chunks` chunks one after another, and returns the figures of the last one.
fn send(path: &Path, messages: u64, chunks: u32) -> Journey {
    let (mut pace, mut rtt, mut serial, start) = (Pace::default(), Rtt::default(), 0, Instant::now());
    let packet = Duration::from_secs_f64(LARGEST_SENT as f64 / path.rate);
    let (mut now, mut free) = (start, start);
    let mut journey = None;
    for number in 1..=messages {
        let message = Message { number, total: u64::from(chunks) * CHUNK as u64, purpose: Purpose::Content };
        let (mut sending, mut receiving) = (Sending::new(message), Receiving::new(message));
        let (began, first, mut progress) = (now, serial, now);
        let (mut waited, mut stalled) = (Duration::ZERO, Duration::ZERO);
        // Packets in transit, with the time of their arrival, and reports, with the time of their return.
        let (mut packets, mut reports) = (VecDeque::new(), VecDeque::new());
        while !sending.is_done() {
            while let Some(index) = sending.next(now, &mut pace, &rtt) {
                serial += 1;
                sending.sent(index, serial, now, &mut rtt);
                free = free.max(now) + packet;
                waited = waited.max(free - now);
                packets.push_back((free + path.delay, index, serial));
            }
            let arrival = packets.front().map(|(at, _, _)| *at);
            let back = reports.front().map(|(at, _): &(Instant, Report)| *at);
            let due = sending.due(&pace, &rtt);
            now = now.max([arrival, back, due].into_iter().flatten().min().expect("something is under way"));
            if arrival == Some(now) {
                let (_, index, serial) = packets.pop_front().expect("it arrives");
                if receiving.take(index, &vec![0; CHUNK]) {
                    stalled = stalled.max(now - progress);
                    progress = now;
                }
                reports.push_back((now + path.delay, Report { echo: serial, ..receiving.report() }));
            }
            while let Some((_, report)) = reports.pop_front_if(|(at, _)| *at <= now) {
                sending.reported(&report, now, &mut pace, &mut rtt);
            }
        }
        journey = Some(Journey { took: now - began, sent: serial - first, waited, stalled });
    }
    journey.expect("at least one message")
}

/// An end gives up after 15 seconds without progress ([`crate::Settings::silence`]). No queue and no pause may come
/// near, on a path of 256 kbit/s and 300 ms, and no path may carry much more than the message.
#[test]
fn a_message_fills_its_path_without_a_long_queue() {
    let silence = crate::Settings::default().silence;
    for (rate, delay) in [(32e3, 150), (64e3, 150), (1e6, 50), (1e7, 100), (1e9, 1)] {
        let path = Path { rate, delay: Duration::from_millis(delay) };
        for (messages, chunks) in [(1, 1), (1, 16), (1, 64), (3, 16), (1, 400)] {
            let journey = send(&path, messages, chunks);
            let least = f64::from(chunks) * LARGEST_SENT as f64 / rate + 2.0 * path.delay.as_secs_f64();
            let case = format!("{rate} bytes/s, {chunks} chunks, at least {least:.3} s: {journey:?}");
            // The window grows for some round trips, and the first chunks may be sent twice.
            let most = 1.02 * least + 6.0 * path.delay.as_secs_f64() + 3.0 * LARGEST_SENT as f64 / rate;
            assert!(journey.took.as_secs_f64() <= most, "{case}");
            assert!(journey.sent <= u64::from(chunks) + 3, "{case}");
            assert!(journey.waited < silence * 2 / 3 && journey.stalled < silence / 2, "{case}");
        }
    }
}
