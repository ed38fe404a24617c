//! What logs look like, and what is taken from each line.

mod access;
mod csv;
mod json;
mod pattern;

use std::borrow::Cow;

use super::args::{Named, TuneArgs};
use super::bad::Why;
use super::error::Error;
use super::value::Unit;
use access::Access;
use json::Json;
use pattern::Pattern;

pub(super) use csv::Csv;

/// From which likeness on (1 is equal) a name is worth a question.
const LIKE: f64 = 0.75;

/// What is wanted of each line: where it stands, or what stands there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted<T> {
    pub(super) latency: T,
    pub(super) key: Option<T>,
    pub(super) pair: Option<T>,
    /// When the call was due, and when it was sent.
    pub(super) times: Option<(T, T)>,
}

/// What stands on a line.
pub(super) type Values<'a> = Wanted<Cow<'a, [u8]>>;

impl<T> Wanted<T> {
    fn try_map<U, E>(&self, mut of: impl FnMut(&T) -> Result<U, E>) -> Result<Wanted<U>, E> {
        Ok(Wanted {
            latency: of(&self.latency)?,
            key: self.key.as_ref().map(&mut of).transpose()?,
            pair: self.pair.as_ref().map(&mut of).transpose()?,
            times: match &self.times {
                Some((due, start)) => Some((of(due)?, of(start)?)),
                None => None,
            },
        })
    }

    /// All of it, the latency first.
    fn each(&self) -> impl Iterator<Item = &T> {
        let times = self.times.iter().flat_map(|(due, start)| [due, start]);
        std::iter::once(&self.latency).chain(&self.key).chain(&self.pair).chain(times)
    }
}

/// How lines are read.
#[derive(Debug)]
pub(super) enum Format {
    Plain,
    Csv(Csv),
    Lines(Lines),
}

/// Formats with one call a line.
#[derive(Debug)]
pub(super) enum Lines {
    Json(Json),
    Access(Access),
    Pattern(Box<Pattern>),
}

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// Of a call that counts.
    Values(Values<'a>),
    /// Of one that failed or was sent more than once: its latency is not that of one attempt.
    Failed,
}

impl Format {
    /// The format that was asked for.
    pub(super) fn new(args: &TuneArgs) -> Result<Self, Error> {
        let wanted = |latency: &str| Wanted {
            latency: latency.to_owned(),
            key: args.key.clone(),
            pair: args.pair.clone(),
            times: args.due.clone().zip(args.start.clone()),
        };
        let shape = &args.shape;
        if let Some(column) = &shape.column {
            return Ok(Self::Csv(Csv::new(wanted(column))));
        }
        if let Some(field) = &shape.field {
            return Ok(Self::Lines(Lines::Json(Json::new(wanted(field)))));
        }
        if let Some(pattern) = &shape.pattern {
            let pattern = Pattern::new(pattern, wanted(""))?;
            return Ok(Self::Lines(Lines::Pattern(Box::new(pattern))));
        }
        if args.pair.is_some() || args.due.is_some() {
            let what = "--pair, --due and --start name a column, field or group; say which log it is \
                        with --column, --field or --pattern";
            return Err(Error::Options(what));
        }
        match (shape.format, &args.key) {
            (Some(named), key) => {
                Ok(Self::Lines(Lines::Access(Access::new(named, key.as_deref())?)))
            }
            (None, None) => Ok(Self::Plain),
            (None, Some(_)) => Err(Error::Options(
                "--key names a column, field or group; say which log it is with --column, --field, \
                 --format or --pattern",
            )),
        }
    }

    /// The unit of bare numbers, if the format fixes one.
    pub(super) fn unit(&self) -> Option<Unit> {
        match self {
            Self::Lines(Lines::Access(access)) => Some(match access.named {
                Named::Nginx | Named::NginxUpstream => Unit::S,
                Named::Envoy => Unit::Ms,
            }),
            _ => None,
        }
    }
}

impl Lines {
    /// What a line says.
    pub(super) fn find<'a>(&self, line: &'a [u8]) -> Result<Found<'a>, Why> {
        match self {
            Self::Json(json) => json.find(line).map(Found::Values),
            Self::Access(access) => access.find(line),
            Self::Pattern(pattern) => pattern.find(line).map(Found::Values),
        }
    }

    /// The field that this line lacks, and the nearest that it has.
    pub(super) fn missing(&self, line: &[u8]) -> Option<(String, Option<String>)> {
        match self {
            Self::Json(json) => json.missing(line),
            _ => None,
        }
    }
}

/// What the input looks like, if that is not what it was said to be.
pub(super) fn hint(head: &[u8]) -> &'static str {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    match first {
        [b'{', ..] => "; this looks like JSON: name the field with --field",
        [b'[', rest @ ..] if rest.windows(2).any(|two| two == b"] ") => {
            "; this looks like an access log: say --format envoy, or what it looks like with --pattern"
        }
        _ if first.windows(5).any(|five| five == b"\"GET " || five == b"HTTP/") => {
            "; this looks like an access log: say --format nginx, or what it looks like with --pattern"
        }
        _ if first.contains(&b',') || first.contains(&b';') || first.contains(&b'\t') => {
            "; this looks like CSV: name the column with --column"
        }
        _ => "",
    }
}

/// The nearest of these names, if one is near.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let like = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let best = names.max_by(|a, b| like(a).total_cmp(&like(b)))?;
    (like(best) >= LIKE).then(|| best.to_owned())
}
