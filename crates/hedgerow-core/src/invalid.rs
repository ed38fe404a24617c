//! The one error of a policy: an option with a value that it cannot have.

use std::fmt;

/// An option was given a value that it cannot have.
///
/// Says which option, what it was given and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidOption {
    option: String,
    value: String,
    remedy: String,
}

impl InvalidOption {
    /// An error about `option`, which was given `value`; `remedy` says what would be right.
    pub fn new(
        option: impl Into<String>,
        value: impl fmt::Display,
        remedy: impl Into<String>,
    ) -> Self {
        Self { option: option.into(), value: value.to_string(), remedy: remedy.into() }
    }

    /// The option's name, as it is written in Rust and in configuration files.
    pub fn option(&self) -> &str {
        &self.option
    }

    /// The value that was refused, as text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What would be right.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// The same error, said of the option inside a larger whole: `policy` + `delay` is
    /// `policy.delay`, `delay` + `[1]` is `delay[1]`, and an error without a name takes the
    /// place's.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        if place.is_empty() {
            return self;
        }
        let dot = match self.option.chars().next() {
            None | Some('[') => "",
            Some(_) => ".",
        };
        self.option = format!("{place}{dot}{}", self.option);
        self
    }
}

impl fmt::Display for InvalidOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is missing has no value, and what stands alone has no name.
        match (self.option.as_str(), self.value.as_str()) {
            (name, "") | ("", name) => write!(f, "{name}: {}", self.remedy),
            (option, value) => write!(f, "{option} = {value}: {}", self.remedy),
        }
    }
}

impl std::error::Error for InvalidOption {}
