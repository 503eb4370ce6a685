//! Ristretto255: secret exponents, and the encoding of elements.
//!
//! Each protocol has its own hash of keys to elements, so that elements of different protocols differ.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use rand::CryptoRng;
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use super::message::{ELEMENT, PsiError, elements};

/// Callback that receives the number of newly processed elements. Several threads may call it.
pub type Progress<'a> = &'a (dyn Fn(usize) + Sync);

/// Half of a secret exponent. It has no `Debug`, and dropping it clears its memory.
///
/// Encoding an element takes an inverse square root. Many doubled elements, however, are encoded together
/// with a single inversion ([`RistrettoPoint::double_and_compress_batch`]). The module therefore raises
/// elements to half of the exponent, and doubles them when it encodes them.
#[derive(Clone)]
pub(super) struct Secret(pub(super) Scalar);

/// Number of elements that are encoded together.
pub(super) const TOGETHER: usize = 64;

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Secret {
    pub(super) fn draw(rng: &mut impl CryptoRng) -> Self {
        let mut wide = Zeroizing::new([0u8; 64]);
        rng.fill_bytes(&mut wide[..]);
        Self(Scalar::from_bytes_mod_order_wide(&wide))
    }

    /// Returns the exponent that removes this exponent from an element.
    pub(super) fn inverse(&self) -> Self {
        // 2 * half = 1 / (2 * own)
        Self((Scalar::from(4u8) * self.0).invert())
    }

    pub(super) fn to_bytes(&self) -> [u8; ELEMENT] {
        self.0.to_bytes()
    }

    /// Parses the bytes of [`Self::to_bytes`]. Returns `None` for 0 and for numbers that are not below the
    /// group's order.
    pub(super) fn from_bytes(bytes: [u8; ELEMENT]) -> Option<Self> {
        let scalar = Option::from(Scalar::from_canonical_bytes(bytes))?;
        (scalar != Scalar::ZERO).then_some(Self(scalar))
    }

    /// Hashes keys to elements by `hash` and returns them raised to the exponent, in order.
    pub(super) fn blind_keys<T: AsRef<[u8]> + Sync>(
        &self,
        keys: &[T],
        hash: impl Fn(&[u8]) -> RistrettoPoint + Sync,
        done: Progress<'_>,
    ) -> Vec<u8> {
        let blind = |key: &T| hash(key.as_ref()) * self.0;
        let chunks = keys.par_chunks(TOGETHER).map(|keys| {
            let written = doubled(&keys.iter().map(blind).collect::<Vec<_>>());
            done(keys.len());
            written
        });
        chunks.collect::<Vec<_>>().concat()
    }

    /// Returns the elements of the other party's message raised to the exponent, in order.
    pub(super) fn blind_elements(&self, message: &[u8], done: Progress<'_>) -> Result<Vec<u8>, PsiError> {
        let blind = |(place, bytes): (usize, &[u8; ELEMENT])| {
            let point =
                CompressedRistretto(*bytes).decompress().filter(|point| *point != RistrettoPoint::default());
            Ok(point.ok_or(PsiError::Element(place))? * self.0)
        };
        let blind = |(chunk, elements): (usize, &[[u8; ELEMENT]])| {
            let places = chunk * TOGETHER..;
            let written = doubled(&places.zip(elements).map(blind).collect::<Result<Vec<_>, _>>()?);
            done(elements.len());
            Ok(written)
        };
        let chunks = elements(message)?.par_chunks(TOGETHER).enumerate().map(blind);
        Ok(chunks.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// Returns the encoded doubles of these points, one after another.
fn doubled(points: &[RistrettoPoint]) -> Vec<u8> {
    let written = RistrettoPoint::double_and_compress_batch(points);
    written.iter().flat_map(CompressedRistretto::as_bytes).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn hash(key: &[u8]) -> RistrettoPoint {
        let mut wide = [7; 64];
        wide[..key.len()].copy_from_slice(key);
        RistrettoPoint::from_uniform_bytes(&wide)
    }

    /// Elements encoded in chunks are in order, and each is the element raised to the whole exponent.
    #[test]
    fn batches_of_elements_equal_single_elements() {
        let secret = Secret(Scalar::from(3u8));
        let keys: Vec<String> = (0..2 * TOGETHER + 5).map(|key| key.to_string()).collect();
        let alone = |key: &String| (hash(key.as_bytes()) * Scalar::from(6u8)).compress().to_bytes();
        let blinded = secret.blind_keys(&keys, hash, &|_| ());
        assert_eq!(blinded, keys.iter().map(alone).collect::<Vec<_>>().concat());
        let twice = |key: &String| (hash(key.as_bytes()) * Scalar::from(36u8)).compress().to_bytes();
        let again = secret.blind_elements(&blinded, &|_| ()).expect("elements");
        assert_eq!(again, keys.iter().map(twice).collect::<Vec<_>>().concat());
        let mut wrong = blinded;
        wrong[(TOGETHER + 1) * ELEMENT..(TOGETHER + 2) * ELEMENT].fill(0xff);
        assert_eq!(secret.blind_elements(&wrong, &|_| ()), Err(PsiError::Element(TOGETHER + 1)));
    }

    #[test]
    fn an_exponent_can_be_removed_and_read_back() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (one, two) = (Secret::draw(&mut rng), Secret::draw(&mut rng));
        let both = two.blind_elements(&one.blind_keys(&["x"], hash, &|_| ()), &|_| ()).expect("an element");
        let read = Secret::from_bytes(one.to_bytes()).expect("an exponent");
        let left = read.inverse().blind_elements(&both, &|_| ()).expect("an element");
        assert_eq!(left, two.blind_keys(&["x"], hash, &|_| ()));
        assert!(Secret::from_bytes([0; ELEMENT]).is_none() && Secret::from_bytes([0xff; ELEMENT]).is_none());
    }
}
