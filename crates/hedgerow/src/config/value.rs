//! A setting before it is understood.

use std::fmt::{self, Write};
use std::time::Duration;

use hedgerow_core::{InvalidOption, text};

use super::{ConfigError, Mistakes, hints};

/// How much of a refused value an error repeats.
const SHOWN: usize = 60;

/// A value of a configuration file, of whatever format.
///
/// Keeps what formats tell apart (50, 50.0 and "50") and what most parsed forms lose (the order of
/// keys, keys given twice), so that a wrong value can be refused for what it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// JSON's and YAML's `null`.
    Null,
    /// True or false.
    Bool(bool),
    /// A number without a point.
    Integer(i128),
    /// A number with a point.
    Float(f64),
    /// A text.
    Text(String),
    /// A date of TOML, a time, or both, as it is written there.
    Date(String),
    /// A list.
    List(Vec<Self>),
    /// Keys and their values, as they were written.
    Table(Vec<(String, Self)>),
}

/// Readers: each takes the value for one thing, and refuses everything else with a remedy.
impl Value {
    /// An error about this value: `remedy` says what would be right.
    pub fn refused(&self, remedy: impl Into<String>) -> ConfigError {
        InvalidOption::new("", self.brief(), remedy).into()
    }

    /// True or false.
    ///
    /// # Errors
    ///
    /// Refuses everything else, the word "true" in quotes too.
    pub fn flag(&self) -> Result<bool, ConfigError> {
        match self {
            Self::Bool(flag) => Ok(*flag),
            _ => Err(self.refused("write true or false, without quotes")),
        }
    }

    /// A text.
    ///
    /// # Errors
    ///
    /// Refuses everything else.
    pub fn text(&self) -> Result<&str, ConfigError> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(self.refused("write a text in quotes")),
        }
    }

    /// A whole number from 0 to `most`.
    ///
    /// # Errors
    ///
    /// Refuses negative numbers, fractions, and numbers in quotes.
    pub fn count(&self, most: u32) -> Result<u32, ConfigError> {
        let count = match self {
            Self::Integer(count) => u32::try_from(*count).ok(),
            _ => None,
        };
        count
            .filter(|count| *count <= most)
            .ok_or_else(|| self.refused(format!("write a whole number from 0 to {most}")))
    }

    /// A duration with its unit.
    ///
    /// # Errors
    ///
    /// Refuses a bare number: whether 100 means milliseconds or seconds is a guess.
    pub fn duration(&self) -> Result<Duration, ConfigError> {
        text::parse_duration(&self.as_written()).map_err(|remedy| self.refused(remedy))
    }

    /// A ratio: a number, or a percentage in quotes.
    ///
    /// # Errors
    ///
    /// Refuses everything else. The range is up to the caller.
    pub fn ratio(&self) -> Result<f64, ConfigError> {
        text::parse_ratio(&self.as_written()).map_err(|remedy| self.refused(remedy))
    }

    /// One of these, by name.
    ///
    /// # Errors
    ///
    /// Refuses every other name, with the nearest one or all of them.
    pub fn choice<T: Copy>(
        &self,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Result<T, ConfigError> {
        let find = |text: &str| all.iter().copied().find(|one| name(*one) == text);
        let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>();
        match self {
            Self::Text(text) => {
                find(text).ok_or_else(|| self.refused(hints::did_you_mean(text, &names(), &[])))
            }
            _ => Err(self.refused(hints::one_of(&names()))),
        }
    }

    /// A list, each entry of which is read by `read`.
    ///
    /// # Errors
    ///
    /// Refuses what is no list, and tells the mistakes of all entries; those past the first are
    /// counted.
    pub fn list<T>(
        &self,
        mut read: impl FnMut(&Self) -> Result<T, ConfigError>,
    ) -> Result<Vec<T>, ConfigError> {
        let Self::List(entries) = self else {
            return Err(self.refused("write a list in brackets"));
        };
        let mut list = Vec::new();
        let mut mistakes = Mistakes::default();
        for (index, entry) in entries.iter().enumerate() {
            match read(entry) {
                Ok(entry) if mistakes.is_empty() => list.push(entry),
                Ok(_) => {}
                Err(error) => mistakes.add(error, format_args!("[{index}]")),
            }
        }
        mistakes.unless_any(list)
    }

    /// The text, or the number as a text; empty for what is neither, or longer than any figure.
    fn as_written(&self) -> String {
        match self {
            Self::Text(text) if text.len() <= SHOWN => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            _ => String::new(),
        }
    }

    /// The value as an error shows it: one line, and not all of a long one.
    fn brief(&self) -> String {
        brief(self)
    }
}

/// The start of a text that may be long, without making the whole of it.
pub(super) fn brief(long: &impl fmt::Display) -> String {
    let mut start = Start(String::new());
    match write!(start, "{long}") {
        Ok(()) => start.0,
        Err(fmt::Error) => start.0 + "…",
    }
}

/// Takes the first characters and refuses the others.
struct Start(String);

impl Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = SHOWN.saturating_sub(self.0.chars().count());
        match text.char_indices().nth(room) {
            None => self.0.push_str(text),
            Some((end, _)) => {
                self.0.push_str(&text[..end]);
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Value {
    /// As JSON, which is also how TOML and YAML write all but tables; dates as TOML does. What
    /// cannot be printed is escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Date(date) => write!(f, "{}", date.escape_debug()),
            Self::List(entries) => {
                f.write_char('[')?;
                for (index, entry) in entries.iter().enumerate() {
                    write!(f, "{}{entry}", if index == 0 { "" } else { ", " })?;
                }
                f.write_char(']')
            }
            Self::Table(entries) => {
                f.write_char('{')?;
                for (index, (key, entry)) in entries.iter().enumerate() {
                    write!(f, "{}{key:?}: {entry}", if index == 0 { "" } else { ", " })?;
                }
                f.write_char('}')
            }
        }
    }
}
