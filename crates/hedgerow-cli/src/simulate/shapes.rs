//! Distributions as a spec writes them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use hedgerow::config::{Fields, Value};
use hedgerow::{ConfigError, InvalidOption, text};
use hedgerow_sim::Distribution;

use crate::input;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Constant,
    Exponential,
    Lognormal,
    Pareto,
    Tail,
    Samples,
    Mixture,
}

const SHAPES: [Shape; 7] = [
    Shape::Constant,
    Shape::Exponential,
    Shape::Lognormal,
    Shape::Pareto,
    Shape::Tail,
    Shape::Samples,
    Shape::Mixture,
];

/// Every key that some shape takes.
const KEYS: [&str; 13] = [
    "value", "mean", "sd", "median", "sigma", "least", "alpha", "points", "values", "file", "unit",
    "parts", "stalls",
];

fn name(shape: Shape) -> &'static str {
    match shape {
        Shape::Constant => "constant",
        Shape::Exponential => "exponential",
        Shape::Lognormal => "lognormal",
        Shape::Pareto => "pareto",
        Shape::Tail => "tail",
        Shape::Samples => "samples",
        Shape::Mixture => "mixture",
    }
}

/// What the numbers of a distribution are, and where its files are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind<'a> {
    /// Durations, as opposed to plain numbers.
    pub(super) durations: bool,
    pub(super) folder: &'a Path,
    /// Those that were read.
    pub(super) files: &'a RefCell<Vec<PathBuf>>,
}

impl Kind<'_> {
    /// A value of the distribution: milliseconds, or a plain number.
    fn value(self, value: &Value) -> Result<f64, ConfigError> {
        if self.durations {
            value.duration().map(|time| time.as_secs_f64() * 1e3)
        } else {
            number(value)
        }
    }

    fn example(self) -> &'static str {
        if self.durations {
            r#"write a duration such as "5ms""#
        } else {
            "write a number such as 1.5"
        }
    }

    /// Reads a distribution.
    pub(super) fn distribution(self, value: &Value) -> Result<Distribution, ConfigError> {
        self.weighted(value, &mut |_| {})
    }

    /// Reads a distribution that stands beside other keys, which `others` reads.
    fn weighted(
        self,
        value: &Value,
        others: &mut dyn FnMut(&mut Fields<'_>),
    ) -> Result<Distribution, ConfigError> {
        let mut fields = Fields::new(value)?;
        let remedy = "use constant, exponential, lognormal, pareto, tail, samples or mixture";
        let shape = fields.require("shape", remedy, |value| value.choice(&SHAPES, name));
        others(&mut fields);
        let Some(shape) = shape else {
            // What the other keys should be nobody can tell.
            for key in KEYS {
                fields.take(key, |_| Ok(()));
            }
            fields.finish(())?;
            return Err(value.refused(remedy));
        };
        let made = self.shaped(shape, value, &mut fields);
        let stalls = fields.take("stalls", |value| self.stalls(value));
        let made = fields.finish(made)?.unwrap_or_else(|| Err(value.refused(remedy)))?;
        match stalls {
            Some((chance, factor, added)) => made
                .with_stalls(chance, factor, added)
                .map_err(|error| ConfigError::from(error).within("stalls")),
            None => Ok(made),
        }
    }

    /// `None` if a parameter is missing or wrong: the fields know.
    fn shaped(
        self,
        shape: Shape,
        table: &Value,
        fields: &mut Fields<'_>,
    ) -> Option<Result<Distribution, ConfigError>> {
        let value = |value: &Value| self.value(value);
        let example = self.example();
        let made = match shape {
            Shape::Constant => Distribution::constant(fields.require("value", example, value)?),
            Shape::Exponential => {
                Distribution::exponential(fields.require("mean", example, value)?)
            }
            Shape::Lognormal => return self.lognormal(table, fields),
            Shape::Pareto => {
                let least = fields.require("least", example, value);
                let alpha = fields.require("alpha", "write a number such as 1.5", number);
                Distribution::pareto(least?, alpha?)
            }
            Shape::Tail => {
                let remedy = "list pairs of a value and the share that exceeds it";
                let points =
                    fields.require("points", remedy, |value| value.list(|point| self.point(point)));
                let alpha = fields.require("alpha", "write the last exponent, such as 1.5", number);
                Distribution::tail(&points?, alpha?)
            }
            Shape::Samples => return self.samples(table, fields),
            Shape::Mixture => {
                let remedy = "list distributions, each with its weight";
                let parts =
                    fields.require("parts", remedy, |value| value.list(|part| self.part(part)));
                Distribution::mixture(&parts?)
            }
        };
        Some(made.map_err(ConfigError::from))
    }

    fn lognormal(
        self,
        table: &Value,
        fields: &mut Fields<'_>,
    ) -> Option<Result<Distribution, ConfigError>> {
        let value = |value: &Value| self.value(value);
        let made = if has(table, "median") {
            let median = fields.take("median", value);
            fields.misplaced(&["mean", "sd"], "not beside median; use median and sigma");
            let remedy = "write the standard deviation of the logarithm, such as 0.35";
            let sigma = fields.require("sigma", remedy, number);
            Distribution::lognormal_around(median?, sigma?)
        } else {
            let mean = fields.require("mean", "write mean and sd, or median and sigma", value);
            let sd = fields.require("sd", self.example(), value);
            Distribution::lognormal(mean?, sd?)
        };
        Some(made.map_err(ConfigError::from))
    }

    fn samples(
        self,
        table: &Value,
        fields: &mut Fields<'_>,
    ) -> Option<Result<Distribution, ConfigError>> {
        let values = if has(table, "values") {
            fields.misplaced(&["file", "unit"], "not beside values; use one of them");
            fields.take("values", |value| value.list(|value| self.value(value)))?
        } else {
            let unit = fields.take("unit", |value| value.text().map(str::to_owned));
            let remedy = "write values, or the name of a file with one on each line";
            fields.require("file", remedy, |value| self.file(value, unit.as_deref()))?
        };
        Some(Distribution::samples(&values).map_err(ConfigError::from))
    }

    fn file(self, value: &Value, unit: Option<&str>) -> Result<Vec<f64>, ConfigError> {
        let path = self.folder.join(value.text()?);
        self.files.borrow_mut().push(path.clone());
        let text = input::text(&path)
            .map_err(|error| value.refused(format!("cannot be read: {error}")))?;
        let mut values = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let sample = if self.durations {
                text::parse_duration(&format!("{}{}", line.trim(), unit.unwrap_or_default()))
                    .map(|time| time.as_secs_f64() * 1e3)
            } else {
                line.trim().parse().map_err(|_| "not a number".to_owned())
            };
            let sample = sample.map_err(|remedy| {
                value.refused(format!("line {}: {remedy}; or say the unit", number + 1))
            })?;
            values.push(sample);
        }
        Ok(values)
    }

    fn point(self, value: &Value) -> Result<(f64, f64), ConfigError> {
        match value {
            Value::List(pair) if pair.len() == 2 => Ok((self.value(&pair[0])?, pair[1].ratio()?)),
            _ => Err(value.refused(r#"write a pair such as ["10ms", 0.02]"#)),
        }
    }

    fn part(self, value: &Value) -> Result<(f64, Distribution), ConfigError> {
        let mut weight = None;
        let distribution = self.weighted(value, &mut |fields| {
            weight = fields.require("weight", "write a number above 0", number);
        })?;
        Ok((weight.unwrap_or(1.0), distribution))
    }

    fn stalls(self, value: &Value) -> Result<(f64, f64, f64), ConfigError> {
        let mut fields = Fields::new(value)?;
        let chance = fields.require("chance", r#"write a share such as "2%""#, Value::ratio);
        let factor = fields.take("factor", number);
        let added = fields.take("add", |value| self.value(value));
        let nothing = factor.is_none() && added.is_none();
        let (chance, factor, added) =
            fields.finish((chance.unwrap_or(0.0), factor.unwrap_or(1.0), added.unwrap_or(0.0)))?;
        if nothing {
            let remedy = r#"missing; write factor = 10 or add = "200ms", or both"#;
            return Err(InvalidOption::new("factor", "", remedy).into());
        }
        Ok((chance, factor, added))
    }
}

/// A plain number.
#[expect(clippy::cast_precision_loss, reason = "nobody counts past 2^53 here")]
pub(super) fn number(value: &Value) -> Result<f64, ConfigError> {
    match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) if number.is_finite() => Ok(*number),
        _ => Err(value.refused("write a number, without quotes")),
    }
}

/// Whether a table has this key.
pub(super) fn has(table: &Value, key: &str) -> bool {
    matches!(table, Value::Table(entries) if entries.iter().any(|(name, _)| name == key))
}
