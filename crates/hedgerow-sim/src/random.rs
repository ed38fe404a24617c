//! Streams of random numbers: one for each call, so that what one call draws changes nothing for
//! another.

use fastrand::Rng;

/// The stream of the arrivals. Calls are numbered from zero and never get here.
pub(crate) const ARRIVALS: u64 = u64::MAX;

/// Stream number `number` of this seed.
///
/// A primary draws the same numbers under every policy, which makes the difference between two
/// policies far more exact than either figure.
#[inline]
pub(crate) fn stream(seed: u64, number: u64) -> Rng {
    Rng::with_seed(mix(mix(seed).wrapping_add(number)))
}

/// The finalizer of `SplitMix64`: neighbours end up far apart.
#[inline]
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number above 0 and at most 1, safe for a logarithm.
#[inline]
pub(crate) fn above_zero(rng: &mut Rng) -> f64 {
    1.0 - rng.f64()
}

/// A draw from the standard normal distribution (Box and Muller, one of the pair).
#[inline]
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * above_zero(rng).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}
