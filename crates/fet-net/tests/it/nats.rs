//! Links over a real NATS server: encrypted, restarted, and with parties that try forbidden actions.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::support::server::{Running, certificates, program};
use crate::support::{Mirror, Pair, Tap, quick, running};
use fet_net::nats::{Hub, NatsError, Server};
use fet_net::{CallError, Connection, Keys, Route, Settings, Transport};

const JOIN: Duration = Duration::from_secs(10);

#[test]
fn calls_cross_an_encrypted_server() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let server = Running::start(program, &pair, &[], true, false);
    let (bank, shop) = (server.hub(&pair.bank.keys), server.hub(&pair.shop.keys));
    let mut caller = pair.caller(bank.to_party(&pair.route).unwrap(), quick());
    let service = pair.service(shop.to_primary(&pair.route).unwrap(), quick());
    let mirror = running(service, Mirror::default(), || {
        caller.wait_for(JOIN, &mut |_| {}).unwrap();
        for size in [0, 1, 65_000, 65_001, 1_000_000, 20_000_000] {
            let request: Vec<u8> = (0..size).map(|at: u32| (at * 7 / 3) as u8).collect();
            let answer = caller.call(&request).unwrap();
            assert!(answer.iter().eq(request.iter().rev()), "{size} bytes");
        }
        let state = caller.state();
        assert!(state.latency.is_some_and(|latency| latency < Duration::from_secs(1)), "{state:?}");
        assert!(state.sent > 21_000_000 && state.received > 21_000_000, "{state:?}");
    });
    assert_eq!(mirror.requests, 6);
}

/// The bank reaches the server by a WebSocket, the shop as usual.
#[test]
fn calls_cross_a_websocket_that_breaks() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    for tls in [true, false] {
        let mut server = Running::start(program.clone(), &pair, &[], tls, false);
        let socket = server.socket();
        assert!(socket.url.starts_with(if tls { "wss://localhost:" } else { "ws://localhost:" }));
        let bank = Hub::connect(&socket, &pair.bank.keys, JOIN).unwrap();
        let shop = server.hub(&pair.shop.keys);
        let settings = Settings { silence: Duration::from_secs(15), ..quick() };
        let mut caller = pair.caller(bank.to_party(&pair.route).unwrap(), settings);
        let service = pair.service(shop.to_primary(&pair.route).unwrap(), settings);
        let mirror = running(service, Mirror::default(), || {
            caller.wait_for(JOIN, &mut |_| {}).unwrap();
            for size in [0, 1, 65_000, 65_001, 20_000_000] {
                let request: Vec<u8> = (0..size).map(|at: u32| (at * 7 / 3) as u8).collect();
                assert!(caller.call(&request).unwrap().iter().eq(request.iter().rev()), "{size} bytes");
                server.stop();
                server.resume();
            }
        });
        assert_eq!((mirror.requests, mirror.begun.len()), (5, 1));
    }
}

#[test]
fn refuses_a_websocket_as_clearly_as_other_addresses() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let mut running = Running::start(program, &pair, &[], true, false);
    let refused = |server: &Server, keys: &Arc<Keys>| match Hub::connect(server, keys, Duration::ZERO) {
        Ok(_) => panic!("connected to {}", server.url),
        Err(error) => (error.to_string(), error),
    };
    let (text, error) = refused(&running.socket(), &Arc::new(Keys::generate()));
    assert!(matches!(error, NatsError::NotAuthorised { .. }), "{text}");

    certificates(running.folder.path(), "other");
    let other = Some(running.folder.path().join("other-ca.pem"));
    let (text, error) = refused(&Server { ca: other, ..running.socket() }, &pair.bank.keys);
    assert!(matches!(error, NatsError::Certificate { .. }) && text.contains("other-ca.pem"), "{text}");

    // With the authority's certificate, a connection without TLS is never made.
    let plain = running.socket().url.replace("wss://", "ws://");
    let mixed = format!("{}, {}", running.socket().url, running.server().url);
    for url in [plain, mixed] {
        let (text, error) = refused(&Server { url, ..running.socket() }, &pair.bank.keys);
        assert!(matches!(error, NatsError::Mixed { .. }), "{text}");
    }

    running.stop();
    let (text, error) = refused(&running.socket(), &pair.bank.keys);
    assert!(matches!(error, NatsError::Unreachable { .. }) && text.contains("refused"), "{text}");
}

#[test]
fn a_server_may_ask_for_a_certificate() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let running = Running::start(program, &pair, &[], true, true);
    let mut server = running.server();
    let error = Hub::connect(&server, &pair.bank.keys, Duration::ZERO).unwrap_err();
    assert!(matches!(&error, NatsError::Certificate { .. }), "{error}");
    let path = |kind: &str| running.folder.path().join(format!("server-{kind}.pem"));
    server.certificate = Some((path("certificate"), path("key")));
    Hub::connect(&server, &pair.bank.keys, Duration::ZERO).unwrap();
    server.certificate = Some((path("key"), path("key")));
    let error = Hub::connect(&server, &pair.bank.keys, Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("server-key.pem") && error.contains("no certificate"), "{error}");
}

#[test]
fn what_keeps_a_party_away_is_said() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let mut running = Running::start(program, &pair, &[], true, false);
    let connect = |server: &_, keys: &Arc<Keys>| match Hub::connect(server, keys, Duration::ZERO) {
        Ok(_) => panic!("connected"),
        Err(error) => (error.to_string(), error),
    };
    let stranger = Arc::new(Keys::generate());
    let (text, error) = connect(&running.server(), &stranger);
    assert!(matches!(error, NatsError::NotAuthorised { .. }), "{text}");
    assert!(text.contains(&stranger.public().to_string()), "{text}");

    certificates(running.folder.path(), "other");
    let mut wrong = running.server();
    wrong.ca = Some(running.folder.path().join("other-ca.pem"));
    let (text, error) = connect(&wrong, &pair.bank.keys);
    assert!(matches!(error, NatsError::Certificate { .. }) && text.contains("other-ca.pem"), "{text}");

    wrong.ca = Some(running.folder.path().join("none.pem"));
    let (text, error) = connect(&wrong, &pair.bank.keys);
    assert!(matches!(error, NatsError::File { .. }) && text.contains("none.pem"), "{text}");

    wrong.url = "localhost".into();
    wrong.ca = None;
    assert!(matches!(connect(&wrong, &pair.bank.keys).1, NatsError::Address { .. }));

    running.stop();
    let (text, error) = connect(&running.server(), &pair.bank.keys);
    assert!(matches!(error, NatsError::Unreachable { .. }) && text.contains("refused"), "{text}");
}

#[test]
fn a_party_does_not_hear_what_is_for_another() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let thief = Arc::new(Keys::generate());
    let server = Running::start(program, &pair, &[("thief", &thief)], true, false);
    let hub = server.hub(&thief);
    let listens = hub.to_primary(&pair.route).unwrap();
    let began = Instant::now();
    let warning = loop {
        if let Connection::Up { warning: Some(warning) } = hub.connection() {
            break warning;
        }
        assert!(began.elapsed() < JOIN, "the server lets it listen: {:?}", hub.connection());
        assert!(listens.receive(Instant::now() + Duration::from_millis(20)).is_none());
    };
    assert!(warning.contains("Permissions Violation") && warning.contains("fet.run.to.shop"), "{warning}");

    // The shop does not hear packets that the thief sends in the name of the bank or the shop either.
    let shop = server.hub(&pair.shop.keys).to_primary(&pair.route).unwrap();
    let bank = server.hub(&pair.bank.keys).to_party(&pair.route).unwrap();
    let began = Instant::now();
    for (from, to) in [(&bank, &shop), (&shop, &bank)] {
        // An end that does not listen yet misses packets: send until one is heard.
        let heard = loop {
            assert!(began.elapsed() < JOIN, "they hear each other");
            from.send(b"true".to_vec());
            if let Some(heard) = to.receive(Instant::now() + Duration::from_millis(100)) {
                break heard;
            }
        };
        assert_eq!(&heard[..], b"true");
    }
    hub.to_party(&pair.route).unwrap().send(b"forged".to_vec());
    listens.send(b"forged".to_vec());
    for link in [shop, bank] {
        while let Some(heard) = link.receive(Instant::now() + Duration::from_millis(500)) {
            assert_eq!(&heard[..], b"true");
        }
    }
}

#[test]
fn a_server_that_is_started_again_disturbs_no_call() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let mut server = Running::start(program, &pair, &[], true, false);
    let settings = Settings { silence: Duration::from_secs(15), ..quick() };
    let (bank, shop) = (server.hub(&pair.bank.keys), server.hub(&pair.shop.keys));
    let mut caller = pair.caller(bank.to_party(&pair.route).unwrap(), settings);
    let service = pair.service(shop.to_primary(&pair.route).unwrap(), settings);
    let request: Vec<u8> = (0..200_000_000_u32).map(|at| (at / 11) as u8).collect();
    let mirror = running(service, Mirror::default(), || {
        caller.wait_for(JOIN, &mut |_| {}).unwrap();
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let answer = caller.call(&request).unwrap();
                (answer, caller.state())
            });
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(150));
                assert!(!calling.is_finished(), "the call was too short for this test");
                server.stop();
                std::thread::sleep(Duration::from_millis(300));
                server.resume();
            }
            let (answer, state) = calling.join().unwrap();
            assert!(answer.iter().eq(request.iter().rev()));
            assert!(state.sent > 200_000_000, "{state:?}");
        });
    });
    assert_eq!((mirror.requests, mirror.begun.len()), (1, 1));
}

#[test]
fn nothing_that_is_said_is_seen_on_the_way() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let server = Running::start(program, &pair, &[], false, false);
    let (bank, shop) = (server.hub(&pair.bank.keys), server.hub(&pair.shop.keys));
    let tap = Tap::new(bank.to_party(&pair.route).unwrap());
    let seen = tap.seen();
    let mut caller = pair.caller(tap, quick());
    let service = pair.service(shop.to_primary(&pair.route).unwrap(), quick());
    let secret = b"the customer's income is 48,210";
    let request = secret.repeat(10_000);
    running(service, Mirror::default(), || {
        caller.wait_for(JOIN, &mut |_| {}).unwrap();
        assert_eq!(caller.call(&request).unwrap().len(), request.len());
    });
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 2 * request.len(), "all of it crossed");
    // Searches for pieces of the request, of the answer and of the greetings.
    let reversed: Vec<u8> = secret.iter().rev().copied().collect();
    let about = [pair.bank.about.as_bytes(), pair.shop.about.as_bytes()].concat();
    for text in [secret.as_slice(), &reversed] {
        let pieces: std::collections::BTreeSet<_> = text.windows(8).collect();
        assert!(seen.windows(8).all(|found| !pieces.contains(found)));
    }
    assert!(about.chunks(6).all(|text| seen.windows(6).all(|found| found != text)));
}

#[test]
fn a_subscription_that_was_altered_on_its_way_is_made_anew() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let server = Running::start(program, &pair, &[], false, false);
    let altered = Server { url: altering(&server.server().url), ..server.server() };
    let shop = Hub::connect(&altered, &pair.shop.keys, JOIN).unwrap();
    let bank = server.hub(&pair.bank.keys);
    let mut caller = pair.caller(bank.to_party(&pair.route).unwrap(), quick());
    let service = pair.service(shop.to_primary(&pair.route).unwrap(), quick());
    running(service, Mirror::default(), || {
        assert!(caller.wait_for(Duration::from_secs(1), &mut |_| {}).is_err(), "nothing was altered");
        caller.wait_for(Duration::from_secs(30), &mut |_| {}).unwrap();
        assert_eq!(caller.call(b"shop").unwrap(), b"pohs");
    });
}

#[test]
fn a_server_that_takes_no_large_packets_is_refused_with_its_limit() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let mut server = Running::start(program, &pair, &[], true, false);
    for (limit, expected) in [(32_768, Some("32768")), (65_063, None)] {
        server.limit(limit);
        let connected = Hub::connect(&server.server(), &pair.bank.keys, Duration::from_secs(5));
        match (connected, expected) {
            (Ok(_), None) => {}
            (Err(error @ NatsError::SmallPayload { .. }), Some(part)) => {
                assert!(error.to_string().contains(part), "{error}");
            }
            (found, _) => panic!("{limit}: {found:?}"),
        }
    }
    // The error also names a server that comes back with a lower limit.
    let link = server.hub(&pair.bank.keys).to_party(&pair.route).unwrap();
    server.limit(2_048);
    let began = Instant::now();
    while !link.connection().to_string().contains("2048") {
        assert!(began.elapsed() < JOIN, "{}", link.connection());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_that_the_server_does_not_know_is_denied() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let server = Running::start(program, &pair, &[], true, false);
    let route = Route { run: "other".parse().unwrap(), ..pair.route.clone() };
    let other = Pair { route, ..pair };
    let (bank, shop) = (server.hub(&other.bank.keys), server.hub(&other.shop.keys));
    let mut caller = other.caller(bank.to_party(&other.route).unwrap(), quick());
    let mut service = other.service(shop.to_primary(&other.route).unwrap(), quick());
    let error = caller.wait_for(JOIN, &mut |_| {}).unwrap_err();
    assert!(matches!(error, CallError::Denied(_)), "{error}");
    assert!(error.to_string().contains("fet.other."), "{error}");
    // The party's end returns although `stop` is not set.
    service.serve(&mut Mirror::default(), &AtomicBool::new(false));
    let connection = service.state().connection;
    assert!(matches!(connection, Connection::Denied { .. }), "{connection}");
}

/// Returns the address of a path to a server without TLS. The path alters the first subscription that crosses
/// it.
fn altering(url: &str) -> String {
    let listens = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a path");
    let address = format!("nats://{}", listens.local_addr().expect("a path"));
    let server = url.trim_start_matches("nats://").to_owned();
    std::thread::spawn(move || {
        let (mut client, _) = listens.accept().expect("a path");
        let mut server = TcpStream::connect(server).expect("a path");
        let (mut down, mut back) = (server.try_clone().expect("a path"), client.try_clone().expect("a path"));
        std::thread::spawn(move || std::io::copy(&mut down, &mut back));
        let mut bytes = vec![0; 1 << 16];
        let mut whole = true;
        while let Ok(read @ 1..) = client.read(&mut bytes) {
            // SUB SUBJECT SID: replaces the SID by one that the client does not know.
            let place = bytes[..read].windows(4).position(|found| found == b"SUB ");
            if let Some(place) = place.filter(|_| std::mem::take(&mut whole)) {
                let end = place + bytes[place..read].iter().position(|byte| *byte == b'\r').expect("a path");
                bytes[end - 1] = if bytes[end - 1] == b'9' { b'8' } else { b'9' };
            }
            if server.write_all(&bytes[..read]).is_err() {
                return;
            }
        }
    });
    address
}

#[test]
fn links_of_two_parties_share_a_connection() {
    let Some(program) = program() else { return };
    let pair = Pair::new();
    let post = Pair::new();
    let server = Running::start(program, &pair, &[("post", &post.shop.keys)], true, false);
    let bank = server.hub(&pair.bank.keys);
    let route = Route { party: "post".parse().unwrap(), ..pair.route.clone() };
    let post = Pair { bank: pair.bank.clone(), shop: post.shop, route };
    std::thread::scope(|scope| {
        for party in [&pair, &post] {
            let (bank, server) = (&bank, &server);
            scope.spawn(move || {
                let shop = server.hub(&party.shop.keys);
                let mut caller = party.caller(bank.to_party(&party.route).unwrap(), quick());
                let service = party.service(shop.to_primary(&party.route).unwrap(), quick());
                running(service, Mirror::default(), || {
                    caller.wait_for(JOIN, &mut |_| {}).unwrap();
                    for at in 0..20_u8 {
                        let request = vec![at; 300_000];
                        assert_eq!(caller.call(&request).unwrap(), request);
                    }
                });
            });
        }
    });
}
