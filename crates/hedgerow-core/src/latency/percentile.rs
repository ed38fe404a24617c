//! A percentile that cannot be mistaken for a ratio.

use std::fmt;

use crate::invalid::InvalidOption;

/// A percentile: 99 is the latency that 99 of 100 calls stay under.
///
/// A type of its own, because 0.99 and 99 have been mistaken for each other: what looks like a
/// ratio is refused.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Percentile(f64);

impl Percentile {
    /// The median.
    pub const P50: Self = Self(50.0);
    /// 9 of 10.
    pub const P90: Self = Self(90.0);
    /// 95 of 100.
    pub const P95: Self = Self(95.0);
    /// 99 of 100.
    pub const P99: Self = Self(99.0);
    /// 999 of 1,000.
    pub const P99_9: Self = Self(99.9);

    /// # Errors
    ///
    /// Anything but a number above 1 and below 100 is refused.
    ///
    /// ```
    /// use hedgerow_core::latency::Percentile;
    /// assert_eq!(Percentile::new(95.0), Ok(Percentile::P95));
    /// assert!(Percentile::new(0.95).unwrap_err().to_string().contains("write 95"));
    /// ```
    pub fn new(percentile: f64) -> Result<Self, InvalidOption> {
        if percentile > 1.0 && percentile < 100.0 {
            return Ok(Self(percentile));
        }
        let remedy = if percentile > 0.0 && percentile < 1.0 {
            format!("that looks like a ratio; write {}", percentile * 100.0)
        } else {
            "use a number above 1 and below 100, such as 95 or 99.9".to_owned()
        };
        Err(InvalidOption::new("percentile", percentile, remedy))
    }

    /// As a number of 100.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The share of calls that stay under it.
    pub fn share(self) -> f64 {
        self.0 / 100.0
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}
