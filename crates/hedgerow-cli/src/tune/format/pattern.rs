//! Any line, by a regular expression.

use std::borrow::Cow;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::{Values, Wanted, nearest};
use crate::tune::bad::Why;
use crate::tune::error::Error;

/// The group that holds the latency, if there is one of this name.
const LATENCY: &str = "latency";

/// Groups of a regular expression.
#[derive(Debug)]
pub(in crate::tune) struct Pattern {
    regex: Regex,
    wanted: Wanted<usize>,
}

impl Pattern {
    pub(super) fn new(pattern: &str, wanted: Wanted<String>) -> Result<Self, Error> {
        let regex = RegexBuilder::new(pattern).unicode(false).build();
        let regex = regex.map_err(|error| Error::Pattern(error.to_string()))?;
        if regex.captures_len() < 2 {
            let what = r"put the latency into parentheses, such as took=(\d+)";
            return Err(Error::Pattern(what.to_owned()));
        }
        let wanted = Wanted { latency: LATENCY.to_owned(), ..wanted };
        let wanted = wanted.try_map(|name| group(&regex, name))?;
        Ok(Self { regex, wanted })
    }

    pub(super) fn find<'a>(&self, line: &'a [u8]) -> Result<Values<'a>, Why> {
        let captures: Captures<'a> = self.regex.captures(line).ok_or(Why::NoMatch)?;
        self.wanted.try_map(|group| {
            let group = captures.get(*group).ok_or(Why::NoGroup)?;
            Ok(Cow::Borrowed(group.as_bytes()))
        })
    }
}

/// The number of a group. The latency may be the first one without a name.
fn group(regex: &Regex, name: &str) -> Result<usize, Error> {
    let mut names = regex.capture_names();
    let number = names.position(|group| group == Some(name));
    let number =
        number.or_else(|| name.parse().ok().filter(|n| (1..regex.captures_len()).contains(n)));
    match number {
        Some(number) => Ok(number),
        None if name == LATENCY => Ok(1),
        None => {
            let near = nearest(name, regex.capture_names().flatten());
            let (input, name) = ("--pattern".to_owned(), name.to_owned());
            Err(Error::Missing { input, kind: "group", name, near })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(key: Option<&str>) -> Wanted<String> {
        let key = key.map(str::to_owned);
        Wanted { latency: String::new(), key, pair: None, times: None }
    }

    #[test]
    fn the_latency_is_the_named_group_or_the_first() {
        for pattern in [r"took=(\d+)us", r"(\w+) took=(?P<latency>\d+)us"] {
            let pattern = Pattern::new(pattern, wanted(None)).unwrap();
            let found = pattern.find(b"GET took=17us").unwrap();
            assert_eq!(*found.latency, *b"17");
            assert_eq!(pattern.find(b"GET took=?"), Err(Why::NoMatch));
        }
        let keyed = Pattern::new(r"(?P<verb>\w+) (?P<latency>\d+)", wanted(Some("verb"))).unwrap();
        assert_eq!(keyed.find(b"GET 17").unwrap().key.as_deref(), Some(&b"GET"[..]));
    }

    #[test]
    fn useless_patterns_are_refused() {
        for (pattern, key, hint) in [
            (r"\d+", None, "parentheses"),
            (r"(\d+", None, "unclosed group"),
            (r"(?P<route>\w+) (\d+)", Some("rote"), r#"did you mean "route"?"#),
        ] {
            let error = Pattern::new(pattern, wanted(key)).unwrap_err().to_string();
            assert!(error.contains(hint), "{pattern}: {error}");
        }
    }
}
