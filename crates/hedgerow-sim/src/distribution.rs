//! How long work takes, as a distribution.

use std::fmt::Display;
use std::sync::Arc;

use fastrand::Rng;
use hedgerow_core::InvalidOption;

use crate::random::{above_zero, normal};

/// A distribution of numbers of at least zero: latencies in milliseconds, or sizes.
///
/// ```
/// use hedgerow_sim::Distribution;
///
/// // Lognormal of mean 5 ms and standard deviation 2 ms, ten times that for one in twenty.
/// let latency = Distribution::lognormal(5.0, 2.0)?.with_stalls(0.05, 10.0, 0.0)?;
/// # Ok::<(), hedgerow_core::InvalidOption>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(Shape);

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Constant(f64),
    Exponential { mean: f64 },
    Lognormal { mu: f64, sigma: f64 },
    Pareto { least: f64, power: f64 },
    Tail(Arc<[Piece]>),
    Samples(Arc<[f64]>),
    Mixture(Arc<[Part]>),
    Stalls { usual: Arc<Distribution>, chance: f64, factor: f64, added: f64 },
}

/// A stretch over which the survival falls with a power of the value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// The value at which it begins.
    from: f64,
    /// The survival there.
    survival: f64,
    /// -1 / the exponent: what turns a ratio of survivals into a ratio of values.
    power: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    /// The chance of this part or an earlier one.
    up_to: f64,
    chance: f64,
    distribution: Distribution,
}

impl Distribution {
    /// Always this value.
    ///
    /// # Errors
    ///
    /// Refuses what is negative or not finite, as every constructor does.
    pub fn constant(value: f64) -> Result<Self, InvalidOption> {
        not_negative("value", value).map(Shape::Constant).map(Self)
    }

    /// Exponential with this mean.
    ///
    /// # Errors
    ///
    /// Refuses a mean that is not positive.
    pub fn exponential(mean: f64) -> Result<Self, InvalidOption> {
        positive("mean", mean).map(|mean| Self(Shape::Exponential { mean }))
    }

    /// Lognormal with this mean and standard deviation.
    ///
    /// # Errors
    ///
    /// Refuses a mean that is not positive, and a deviation that is negative or more than 1e150 times
    /// the mean.
    pub fn lognormal(mean: f64, sd: f64) -> Result<Self, InvalidOption> {
        let (mean, sd) = (positive("mean", mean)?, not_negative("sd", sd)?);
        let variance = (1.0 + (sd / mean).powi(2)).ln();
        if !variance.is_finite() {
            return Err(InvalidOption::new("sd", sd, "too far from the mean; use less"));
        }
        Ok(Self(Shape::Lognormal { mu: mean.ln() - variance / 2.0, sigma: variance.sqrt() }))
    }

    /// Lognormal with this median; `sigma` is the standard deviation of the logarithm.
    ///
    /// # Errors
    ///
    /// Refuses a median that is not positive and a negative deviation.
    pub fn lognormal_around(median: f64, sigma: f64) -> Result<Self, InvalidOption> {
        let (median, sigma) = (positive("median", median)?, not_negative("sigma", sigma)?);
        Ok(Self(Shape::Lognormal { mu: median.ln(), sigma }))
    }

    /// Pareto: never below `least`, survival (x / least) ^ -alpha.
    ///
    /// # Errors
    ///
    /// Refuses parameters that are not positive.
    pub fn pareto(least: f64, alpha: f64) -> Result<Self, InvalidOption> {
        let (least, alpha) = (positive("least", least)?, positive("alpha", alpha)?);
        Ok(Self(Shape::Pareto { least, power: -1.0 / alpha }))
    }

    /// A tail in pieces: the survival falls with a power of the value from each point (value,
    /// survival) to the next, and past the last point as x ^ -alpha.
    ///
    /// # Errors
    ///
    /// The first survival must be 1; values must rise and survivals fall.
    pub fn tail(points: &[(f64, f64)], alpha: f64) -> Result<Self, InvalidOption> {
        let refused = |remedy| InvalidOption::new("points", format!("{points:?}"), remedy);
        let begins =
            |(value, survival): &(f64, f64)| *value > 0.0 && (survival - 1.0).abs() < 1e-12;
        if !points.first().is_some_and(begins) {
            return Err(refused("the first point needs a value above 0 and a survival of 1"));
        }
        let falls = |pair: &[(f64, f64)]| pair[1].0 > pair[0].0 && pair[1].1 < pair[0].1;
        if !points.windows(2).all(falls) || points.iter().any(|point| point.1 <= 0.0) {
            return Err(refused("values must rise and survivals fall, and stay above 0"));
        }
        let last = -1.0 / positive("alpha", alpha)?;
        let power =
            |pair: &[(f64, f64)]| (pair[1].0 / pair[0].0).ln() / (pair[1].1 / pair[0].1).ln();
        let powers = points.windows(2).map(power).chain([last]);
        let piece = |((from, survival), power): (&(f64, f64), f64)| Piece {
            from: *from,
            survival: *survival,
            power,
        };
        Ok(Self(Shape::Tail(points.iter().zip(powers).map(piece).collect())))
    }

    /// One of these values, each as likely as the others.
    ///
    /// # Errors
    ///
    /// Refuses an empty list, and values that are negative or not finite.
    pub fn samples(values: &[f64]) -> Result<Self, InvalidOption> {
        if values.is_empty() {
            return Err(InvalidOption::new("values", "[]", "give at least one value"));
        }
        values.iter().try_for_each(|value| not_negative("values", *value).map(drop))?;
        Ok(Self(Shape::Samples(values.into())))
    }

    /// Each of these with its weight; weights need not sum to 1.
    ///
    /// # Errors
    ///
    /// Refuses an empty list, weights that are not positive, and those whose sum is not finite.
    pub fn mixture(parts: &[(f64, Self)]) -> Result<Self, InvalidOption> {
        if parts.is_empty() {
            return Err(InvalidOption::new("parts", "[]", "give at least one part"));
        }
        parts.iter().try_for_each(|(weight, _)| positive("weight", *weight).map(drop))?;
        let whole: f64 = parts.iter().map(|(weight, _)| weight).sum();
        if !whole.is_finite() {
            return Err(InvalidOption::new("weight", whole, "the sum is too large; use less"));
        }
        let mut up_to = 0.0;
        let part = |(weight, distribution): &(f64, Self)| {
            let chance = weight / whole;
            up_to += chance;
            Part { up_to, chance, distribution: distribution.clone() }
        };
        Ok(Self(Shape::Mixture(parts.iter().map(part).collect())))
    }

    /// The same, but with this chance `factor` times as long plus `added`: a stall.
    ///
    /// # Errors
    ///
    /// Refuses a chance outside 0 to 1, and a factor or an addition that is negative.
    pub fn with_stalls(self, chance: f64, factor: f64, added: f64) -> Result<Self, InvalidOption> {
        let chance = share("chance", chance)?;
        let (factor, added) = (not_negative("factor", factor)?, not_negative("add", added)?);
        Ok(Self(Shape::Stalls { usual: Arc::new(self), chance, factor, added }))
    }

    /// One value. `branch` (0 up to 1, uniform) chooses among the parts of a mixture and whether it
    /// stalls: two draws with the same branch stall together.
    pub(crate) fn sample(&self, branch: f64, rng: &mut Rng) -> f64 {
        match &self.0 {
            Shape::Constant(value) => *value,
            Shape::Exponential { mean } => -above_zero(rng).ln() * mean,
            Shape::Lognormal { mu, sigma } => (mu + sigma * normal(rng)).exp(),
            Shape::Pareto { least, power } => least * above_zero(rng).powf(*power),
            Shape::Tail(pieces) => below(pieces, above_zero(rng)),
            Shape::Samples(values) => values[rng.usize(..values.len())],
            Shape::Mixture(parts) => {
                let index = parts.partition_point(|part| part.up_to <= branch);
                let part = &parts[index.min(parts.len() - 1)];
                let inside = 1.0 - (part.up_to - branch) / part.chance;
                part.distribution.sample(inside.clamp(0.0, 1.0), rng)
            }
            Shape::Stalls { usual, chance, factor, added } => {
                if branch < *chance {
                    usual.sample(branch / chance, rng) * factor + added
                } else {
                    usual.sample((branch - chance) / (1.0 - chance), rng)
                }
            }
        }
    }

    /// Whether `branch` changes anything.
    pub(crate) fn has_branches(&self) -> bool {
        matches!(self.0, Shape::Mixture(_) | Shape::Stalls { .. })
    }
}

/// The value with this survival.
fn below(pieces: &[Piece], survival: f64) -> f64 {
    let index = pieces.partition_point(|piece| piece.survival >= survival).max(1);
    let piece = pieces[index - 1];
    piece.from * (survival / piece.survival).powf(piece.power)
}

pub(crate) fn positive(option: &str, value: f64) -> Result<f64, InvalidOption> {
    checked(option, value, value > 0.0, "use a number above 0")
}

pub(crate) fn not_negative(option: &str, value: f64) -> Result<f64, InvalidOption> {
    checked(option, value, value >= 0.0, "use a number of at least 0")
}

pub(crate) fn share(option: &str, value: f64) -> Result<f64, InvalidOption> {
    checked(option, value, (0.0..=1.0).contains(&value), r#"use 0 to 1, such as 0.02 or "2%""#)
}

fn checked<V: Display + Into<f64> + Copy>(
    option: &str,
    value: V,
    fits: bool,
    remedy: &str,
) -> Result<f64, InvalidOption> {
    if fits && value.into().is_finite() {
        Ok(value.into())
    } else {
        Err(InvalidOption::new(option, value, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    fn draws(distribution: &Distribution, count: u32) -> Vec<f64> {
        let mut rng = stream(1, 0);
        let mut draws: Vec<f64> = (0..count)
            .map(|_| {
                let branch = rng.f64();
                distribution.sample(branch, &mut rng)
            })
            .collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    fn mean(draws: &[f64]) -> f64 {
        draws.iter().sum::<f64>() / f64::from(u32::try_from(draws.len()).unwrap())
    }

    fn close(value: f64, wanted: f64, within: f64) {
        assert!((value / wanted - 1.0).abs() < within, "{value} is not {wanted}");
    }

    #[test]
    fn means_are_those_that_were_asked_for() {
        let lognormal = Distribution::lognormal(5.0, 2.0).unwrap();
        let exponential = Distribution::exponential(3.0).unwrap();
        let both = [(1.0, lognormal.clone()), (3.0, exponential.clone())];
        for (distribution, wanted) in [
            (Distribution::constant(7.0), 7.0),
            (Ok(exponential), 3.0),
            (Ok(lognormal.clone()), 5.0),
            (Distribution::lognormal_around(5.0, 0.35), 5.0 * (0.35_f64.powi(2) / 2.0).exp()),
            (Distribution::pareto(1.0, 3.0), 1.5),
            (Distribution::samples(&[1.0, 2.0, 6.0]), 3.0),
            (Distribution::mixture(&both), 3.5),
            (lognormal.with_stalls(0.05, 10.0, 100.0), 4.75 + 0.05 * 150.0),
        ] {
            close(mean(&draws(&distribution.unwrap(), 400_000)), wanted, 0.01);
        }
    }

    #[test]
    fn a_tail_in_pieces_goes_through_its_points() {
        let points = [(2.0, 1.0), (10.0, 0.02), (70.0, 0.0032)];
        let draws = draws(&Distribution::tail(&points, 1.7765).unwrap(), 1_000_000);
        assert!(draws[0] >= 2.0);
        close(draws[980_000], 10.0, 0.02);
        close(draws[996_800], 70.0, 0.05);
        close(draws[999_680], 70.0 * 10.0_f64.powf(1.0 / 1.7765), 0.1);
    }

    #[test]
    fn equal_branches_stall_together() {
        let stalls = Distribution::constant(1.0).unwrap().with_stalls(0.3, 2.0, 5.0).unwrap();
        let mut rng = stream(1, 0);
        for (branch, wanted) in [(0.0, 7.0), (0.29, 7.0), (0.3, 1.0), (0.99, 1.0)] {
            close(stalls.sample(branch, &mut rng), wanted, 1e-12);
        }
        assert!(stalls.has_branches());
    }

    #[test]
    fn impossible_parameters_are_refused_by_name() {
        let one = Distribution::constant(1.0).unwrap();
        for (result, option) in [
            (Distribution::constant(-1.0), "value"),
            (Distribution::exponential(0.0), "mean"),
            (Distribution::lognormal(f64::NAN, 1.0), "mean"),
            (Distribution::lognormal(1.0, f64::INFINITY), "sd"),
            (Distribution::lognormal(1e-100, 1e100), "sd"),
            (Distribution::mixture(&[(1e308, one.clone()), (1e308, one.clone())]), "weight"),
            (Distribution::pareto(1.0, -2.0), "alpha"),
            (Distribution::tail(&[], 1.0), "points"),
            (Distribution::tail(&[(1.0, 0.9)], 1.0), "points"),
            (Distribution::tail(&[(1.0, 1.0), (0.5, 0.5)], 1.0), "points"),
            (Distribution::samples(&[]), "values"),
            (Distribution::mixture(&[(0.0, one.clone())]), "weight"),
            (one.with_stalls(1.5, 1.0, 0.0), "chance"),
        ] {
            assert_eq!(result.unwrap_err().option(), option);
        }
    }
}
