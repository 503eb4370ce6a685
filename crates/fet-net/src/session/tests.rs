//! Sessions between two ends, and disturbances.

use super::*;
use crate::identity::Keys;
use crate::names::Route;

fn route(run: &str, party: &str) -> Route {
    let name = |text: &str| text.parse().unwrap();
    Route { run: name(run), primary: name("bank"), party: name(party) }
}

fn hello(instance_id: u64, version: u16) -> Hello {
    Hello { instance_id, version, largest: 10, serves: 7, about: format!("about {instance_id}") }
}

fn pair(primary: &Keys, party: &Keys) -> (Session, Session) {
    let route = route("run", "shop");
    let initiation =
        Initiation::new(Ends { route: &route, keys: primary, other: &party.public() }, &hello(1, PROTOCOL));
    let ends = Ends { route: &route, keys: party, other: &primary.public() };
    let (at_party, theirs, answer) = respond(ends, |_| hello(2, 7), &initiation.packet).unwrap();
    assert_eq!(theirs, hello(1, PROTOCOL));
    let (at_primary, theirs) = initiation.finish(&answer).ok().unwrap();
    assert_eq!(theirs, hello(2, 7));
    (at_primary, at_party)
}

#[test]
fn packets_are_opened_once_in_any_order() {
    let (mut primary, mut party) = pair(&Keys::generate(), &Keys::generate());
    let mut plain = vec![0; LARGEST_PLAIN];
    let packets: Vec<_> = (0..200_u8).map(|at| primary.seal(&[at; 5])).collect();
    for (at, packet) in packets.iter().enumerate().rev() {
        assert_eq!(party.open(packet, &mut plain), PacketOutcome::Plain(5));
        assert_eq!(plain[..5], [at as u8; 5]);
        assert_eq!(party.open(packet, &mut plain), PacketOutcome::Repeated);
    }
    let largest = party.seal(&vec![7; LARGEST_PLAIN]);
    assert!(largest.len() <= crate::transport::LARGEST_PACKET);
    assert_eq!(primary.open(&largest, &mut plain), PacketOutcome::Plain(LARGEST_PLAIN));
}

#[test]
fn an_altered_packet_is_not_opened_and_changes_nothing() {
    let (mut primary, mut party) = pair(&Keys::generate(), &Keys::generate());
    let mut plain = vec![0; LARGEST_PLAIN];
    let packet = primary.seal(b"the original");
    for at in 0..packet.len() {
        let mut altered = packet.clone();
        altered[at] ^= 1;
        let expected = if at < 9 { PacketOutcome::Elsewhere } else { PacketOutcome::Unreadable };
        assert_eq!(party.open(&altered, &mut plain), expected, "byte {at}");
        assert_ne!(party.open(&packet[..at], &mut plain), PacketOutcome::Plain(12));
    }
    assert_eq!(party.open(&packet, &mut plain), PacketOutcome::Plain(12));
    assert_eq!(primary.open(&packet, &mut plain), PacketOutcome::Unreadable, "sent back to its sender");
    let (_, mut other) = pair(&Keys::generate(), &Keys::generate());
    assert_eq!(other.open(&packet, &mut plain), PacketOutcome::Elsewhere);
}

#[test]
fn a_handshake_holds_for_two_keys_and_one_route() {
    let [bank, shop, thief] = std::array::from_fn(|_| Keys::generate());
    let here = route("run", "shop");
    let first = |keys: &Keys, route: &Route| {
        Initiation::new(Ends { route, keys, other: &shop.public() }, &hello(1, PROTOCOL))
    };
    let ends = Ends { route: &here, keys: &shop, other: &bank.public() };
    let answered = |packet: &[u8]| respond(ends, |_| hello(2, PROTOCOL), packet).is_some();
    let good = first(&bank, &here);
    assert!(answered(&good.packet));
    assert!(!answered(&first(&thief, &here).packet));
    assert!(!answered(&first(&bank, &route("run2", "shop")).packet));
    assert!(!answered(&first(&bank, &route("run", "shopp")).packet));
    for at in 0..good.packet.len() {
        let mut altered = good.packet.clone();
        altered[at] ^= 0x80;
        assert!(!answered(&altered), "byte {at}");
        assert!(!answered(&good.packet[..at]), "{at} bytes");
    }
}

#[test]
fn forged_answers_leave_a_handshake_as_it_was() {
    let [bank, shop, thief] = std::array::from_fn(|_| Keys::generate());
    let route = route("run", "shop");
    let mut initiation =
        Initiation::new(Ends { route: &route, keys: &bank, other: &shop.public() }, &hello(1, PROTOCOL));
    let ends = Ends { route: &route, keys: &shop, other: &bank.public() };
    let (_, _, answer) = respond(ends, |_| hello(2, PROTOCOL), &initiation.packet).unwrap();
    let for_thief =
        Initiation::new(Ends { route: &route, keys: &thief, other: &shop.public() }, &hello(1, PROTOCOL));
    let ends = Ends { route: &route, keys: &shop, other: &thief.public() };
    let (_, _, other) = respond(ends, |_| hello(2, PROTOCOL), &for_thief.packet).unwrap();
    let altered = |at: usize| {
        let mut altered = answer.clone();
        altered[at] ^= 4;
        altered
    };
    let forged = (0..answer.len()).map(altered).chain([other, vec![], vec![SECOND], vec![SECOND; 70_000]]);
    for packet in forged {
        initiation = initiation.finish(&packet).expect_err("forged");
    }
    assert!(initiation.finish(&answer).is_ok());
}

#[test]
fn a_greeting_is_cut_at_its_limit() {
    let [bank, shop] = std::array::from_fn(|_| Keys::generate());
    let route = route("run", "shop");
    let long = Hello { about: "é".repeat(4000), ..hello(1, PROTOCOL) };
    let initiation = Initiation::new(Ends { route: &route, keys: &bank, other: &shop.public() }, &long);
    let ends = Ends { route: &route, keys: &shop, other: &bank.public() };
    let (_, theirs, _) = respond(ends, |_| hello(2, PROTOCOL), &initiation.packet).unwrap();
    assert_eq!(theirs.about, "é".repeat(2048));
}

impl std::fmt::Debug for Initiation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiation")
    }
}
