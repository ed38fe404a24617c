//! The result for a program: one JSON object on one line.

use std::time::Duration;

use serde::Serialize;

use super::{error::Error, report::Comparison, stats::Summary};

/// One phase for a program.
#[derive(Debug, Serialize)]
struct Phase {
    requests: u32,
    errors: u32,
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
}

#[derive(Debug, Serialize)]
struct Hedged {
    #[serde(flatten)]
    phase: Phase,
    extra_load: f64,
    hedges_won: f64,
}

#[derive(Debug, Serialize)]
struct Both {
    direct: Phase,
    hedged: Hedged,
}

impl From<&Summary> for Phase {
    fn from(summary: &Summary) -> Self {
        let millis = |duration: Duration| rounded(duration.as_secs_f64() * 1e3, 1e2);
        Self {
            requests: summary.requests,
            errors: summary.errors,
            p50_ms: millis(summary.p50),
            p90_ms: millis(summary.p90),
            p99_ms: millis(summary.p99),
            p999_ms: millis(summary.p999),
            max_ms: millis(summary.max),
        }
    }
}

/// The result for a program, on one line.
pub(super) fn line(Comparison { direct, hedged }: &Comparison) -> Result<String, Error> {
    let both = Both {
        direct: direct.into(),
        hedged: Hedged {
            phase: hedged.into(),
            extra_load: rounded(hedged.extra_load, 1e4),
            hedges_won: rounded(hedged.hedges_won, 1e4),
        },
    };
    serde_json::to_string(&both).map_err(Error::Json)
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_exactly_the_promised_shape() {
        let direct = Summary {
            requests: 1000,
            p50: Duration::from_micros(4123),
            p99: Duration::from_millis(312),
            max: Duration::from_millis(400),
            ..Summary::default()
        };
        let hedged = Summary {
            requests: 1031,
            p99: Duration::from_millis(18),
            extra_load: 0.031_04,
            hedges_won: 0.03,
            ..direct.clone()
        };
        let both = Comparison { direct, hedged };
        let expected = concat!(
            r#"{"direct":{"requests":1000,"errors":0,"p50_ms":4.12,"p90_ms":0.0,"#,
            r#""p99_ms":312.0,"p999_ms":0.0,"max_ms":400.0},"#,
            r#""hedged":{"requests":1031,"errors":0,"p50_ms":4.12,"p90_ms":0.0,"#,
            r#""p99_ms":18.0,"p999_ms":0.0,"max_ms":400.0,"#,
            r#""extra_load":0.031,"hedges_won":0.03}}"#
        );
        assert_eq!(line(&both).unwrap(), expected);
    }
}
