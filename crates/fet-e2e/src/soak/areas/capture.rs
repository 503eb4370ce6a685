//! Records all traffic between the members and a server without TLS, in both directions, for a whole run. The
//! traffic must contain no piece of a private value, and must look like noise. A control checks that the same
//! search finds planted pieces.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::proxy::ProxyPlan;
use crate::soak::world::SoakWorld;

const AREA: &str = "capture";
/// Length of the pieces to search for.
const PIECE: usize = 8;
/// Number of public bytes at the start of each message: its kind, the session, and its number.
const HEADER: usize = 17;
/// Length of the payload blocks that must look like noise.
const BLOCK: usize = 4096;
/// Maximum χ² of a block's 256 counts. With 255 degrees of freedom, noise exceeds it with a probability α <
/// 10⁻⁹ (mean 255, standard deviation 22.6). A block of floats has several thousand.
const MOST_CHI2: f64 = 420.0;

pub(super) fn cases() -> Vec<Case<Kit>> {
    let people = || SoakExperiment::new(Data::People);
    let places = || SoakExperiment::new(Data::Places);
    let digits = || SoakExperiment::new(Data::Digits);
    let secure = "{ kind = \"secure-average\" }";
    let whole: [(&str, SoakExperiment); 6] = [
        ("people", people()),
        ("places", places()),
        (
            "people, psi, secure",
            people().with("linker", "{ kind = \"psi\", neighbours = 2 }").with("aggregator", secure),
        ),
        (
            "places, private",
            places().with("privacy", "{ kind = \"discrete-gaussian\" }").with("aggregator", secure),
        ),
        ("digits", digits().rows(600)),
        (
            "sales, labels with noise",
            SoakExperiment::new(Data::Sales).with("labels", "{ kind = \"laplace\", low = 0.0, high = 5.0 }"),
        ),
    ];
    let case = |(number, (name, experiment)): (usize, (&str, SoakExperiment))| {
        Case::new(AREA, name, move |kit, folder, rng| captured(kit, folder, experiment.clone(), rng))
            .short(number < 2)
    };
    whole.into_iter().enumerate().map(case).collect()
}

fn captured(
    kit: &Kit,
    folder: &Path,
    experiment: SoakExperiment,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    kit.simulation(&experiment)?;
    let world = SoakWorld::new(kit, folder, experiment, false, 20)?;
    let record = || ProxyPlan { record: true, ..ProxyPlan::default() };
    let proxies = world
        .members()
        .iter()
        .map(|member| world.through(member, record()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut parties = world.parties()?;
    let ended = world.run(kit.patience(60))?;
    if ended.code != Some(0) {
        verdict.fault(FaultKind::WrongCode, format!("the primary: {}: {}", ended.describe(), ended.stderr));
        return Ok(verdict);
    }
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    let mut streams: Vec<Vec<u8>> = proxies.iter().flat_map(|proxy| proxy.records()).collect();
    let secrets = Secrets::collect(&world)?;
    let sent: usize = streams.iter().map(Vec::len).sum();
    verdict.note(format!("{sent} bytes in {} streams, {} pieces", streams.len(), secrets.pieces.len()));
    let payload: usize = streams.iter().map(|stream| payloads(stream).len()).sum();
    // Checks that the recording is not empty, because a search in an empty recording would find no leaks.
    if payload < 20_000 || secrets.pieces.len() < 3000 {
        verdict.fault(FaultKind::WrongCode, format!("{payload} bytes of payload were recorded"));
    }
    for (stream, bytes) in streams.iter().enumerate() {
        for (what, at) in secrets.found(bytes).into_iter().take(3) {
            verdict.fault(FaultKind::Leak, format!("stream {stream}, byte {at}: {what}"));
        }
        for (block, chi2) in structured(&payloads(bytes)) {
            let what = format!("stream {stream}, block {block} of the payload is not noise: χ² {chi2:.0}");
            verdict.fault(FaultKind::Leak, what);
        }
    }
    control(&mut streams, &secrets, rng, &mut verdict);
    Ok(verdict)
}

/// Plants pieces of each kind of secret in the recording, and checks that the search finds all of them.
fn control(streams: &mut [Vec<u8>], secrets: &Secrets, rng: &mut ChaCha8Rng, verdict: &mut CaseResult) {
    let mut kinds: BTreeMap<&str, Vec<[u8; PIECE]>> = BTreeMap::new();
    for (piece, what) in &secrets.pieces {
        kinds.entry(what).or_default().push(*piece);
    }
    for (what, mut pieces) in kinds {
        pieces.sort_unstable();
        for _ in 0..5 {
            let piece = pieces[rng.random_range(0..pieces.len())];
            let long: Vec<usize> =
                (0..streams.len()).filter(|&stream| streams[stream].len() > 2 * PIECE).collect();
            let stream = &mut streams[long[rng.random_range(0..long.len())]];
            let at = rng.random_range(0..stream.len() - PIECE);
            let before = stream[at..at + PIECE].to_vec();
            stream[at..at + PIECE].copy_from_slice(&piece);
            if !secrets.found(stream).iter().any(|(_, found)| *found == at) {
                verdict.fault(FaultKind::WrongCode, format!("a planted piece of {what} is not found"));
            }
            stream[at..at + PIECE].copy_from_slice(&before);
        }
    }
    let floats: Vec<u8> = (0..BLOCK / 4).flat_map(|_| (rng.random::<f32>() - 0.5).to_le_bytes()).collect();
    if structured(&floats).is_empty() {
        verdict.fault(FaultKind::WrongCode, "a planted block of floats is not found");
    }
}

/// Pieces of private values, with the kind of value.
struct Secrets {
    pieces: HashMap<[u8; PIECE], &'static str>,
}

impl Secrets {
    /// Collects the keys, tables and models of all members, in the form of files and of memory.
    fn collect(world: &SoakWorld<'_>) -> anyhow::Result<Self> {
        let mut secrets = Self { pieces: HashMap::new() };
        for member in world.members() {
            let key = std::fs::read_to_string(world.kit.key(member))?;
            let secret = key.lines().last().unwrap_or_default();
            secrets.add(secret.as_bytes(), 1, "a key file");
            secrets.add(&base32(secret), 1, "a key");
        }
        for table in world.experiment.files() {
            let rows = || table.text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
            for row in rows() {
                row.iter().for_each(|cell| secrets.add(cell.as_bytes(), 1, "a cell of a table"));
            }
            let columns = rows().next().map_or(0, |row| row.len());
            let values: Vec<Vec<f64>> =
                rows().map(|row| row.iter().map(|cell| cell.parse().unwrap_or(f64::NAN)).collect()).collect();
            for column in 0..columns {
                let own: Vec<f64> =
                    values.iter().map(|row| row[column]).filter(|value| value.is_finite()).collect();
                secrets.numbers(&own, "a column of a table");
                let count = own.len().max(1) as f64;
                let mean = own.iter().sum::<f64>() / count;
                let deviation = (own.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
                let scaled: Vec<f64> = own.iter().map(|value| (value - mean) / deviation).collect();
                secrets.numbers(&scaled, "a scaled column of a table");
            }
            values.iter().for_each(|row| secrets.numbers(row, "a row of a table"));
        }
        let members = world.members();
        let models = members[1..].iter().map(|member| world.model(member));
        for path in models.chain([world.member_folder("primary").join("out/model.safetensors")]) {
            let bytes = std::fs::read(&path)?;
            let mut length = [0; 8];
            length.copy_from_slice(&bytes[..8]);
            let header = usize::try_from(u64::from_le_bytes(length)).unwrap_or(0);
            secrets.add(&bytes[8 + header..], 4, "a model's parameters");
        }
        let out = world.member_folder("primary").join("out");
        let predictions = std::fs::read_to_string(out.join("predictions.csv"))?;
        for cell in predictions.lines().skip(1).flat_map(|line| line.split(',')) {
            secrets.add(cell.as_bytes(), 1, "a prediction");
        }
        Ok(secrets)
    }

    fn numbers(&mut self, values: &[f64], what: &'static str) {
        let floats: Vec<u8> = values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
        self.add(&floats, 4, what);
        let doubles: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add(&doubles, 8, what);
    }

    /// Adds every piece that begins at a multiple of `step`. Skips pieces with fewer than four different
    /// bytes, such as zeros or ones, which also occur in public data.
    fn add(&mut self, bytes: &[u8], step: usize, what: &'static str) {
        for window in bytes.windows(PIECE).step_by(step) {
            let mut piece = [0; PIECE];
            piece.copy_from_slice(window);
            let mut different = piece;
            different.sort_unstable();
            let count = 1 + different.windows(2).filter(|pair| pair[0] != pair[1]).count();
            if count >= 4 {
                self.pieces.insert(piece, what);
            }
        }
    }

    /// Returns the pieces in a recording with their positions.
    fn found(&self, stream: &[u8]) -> Vec<(&'static str, usize)> {
        let windows = stream.windows(PIECE).enumerate();
        windows.filter_map(|(at, window)| Some((*self.pieces.get(window)?, at))).collect()
    }
}

/// Returns the concatenated payloads of a stream's messages without their headers. The protocol's lines `PUB`
/// and `MSG` end with the number of bytes. An identical repetition of a message counts once, such as the
/// first message of a handshake while a party starts.
fn payloads(stream: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    let mut at = 0;
    while let Some(end) = stream[at..].windows(2).position(|pair| pair == b"\r\n") {
        let line = String::from_utf8_lossy(&stream[at..at + end]).into_owned();
        at += end + 2;
        let count = line.starts_with("PUB ").then_some(&line).or(line.starts_with("MSG ").then_some(&line));
        let count: Option<usize> = count.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        if let Some(bytes) = count.and_then(|count| stream.get(at..at + count)) {
            if known.insert(bytes) {
                found.extend(&bytes[HEADER.min(bytes.len())..]);
            }
            at += bytes.len() + 2;
        }
    }
    found
}

/// Returns the blocks whose bytes are not equally frequent, with their χ².
fn structured(payload: &[u8]) -> Vec<(usize, f64)> {
    let chi2 = |block: &[u8]| {
        let mut counts = [0.0_f64; 256];
        block.iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
        let expected = BLOCK as f64 / 256.0;
        counts.iter().map(|count| (count - expected).powi(2) / expected).sum::<f64>()
    };
    let blocks = payload.chunks_exact(BLOCK).map(chi2).enumerate();
    blocks.filter(|(_, chi2)| *chi2 > MOST_CHI2).collect()
}

/// Returns the bytes of a text in base 32, the format of keys.
fn base32(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter_map(|c| match c {
        b'A'..=b'Z' => Some(u32::from(c - b'A')),
        b'2'..=b'7' => Some(u32::from(c - b'2') + 26),
        _ => None,
    });
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for digit in digits {
        held = held << 5 | digit;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    bytes
}
