//! Access logs of nginx and Envoy.

use std::borrow::Cow;

use super::{Found, Wanted, nearest};
use crate::tune::args::Named;
use crate::tune::bad::Why;
use crate::tune::error::Error;

/// What an access log can be tuned by.
const KEYS: [&str; 4] = ["path", "method", "authority", "upstream"];
/// Those that only Envoy's has, as places after the duration.
const AFTER_DURATION: [(&str, usize); 2] = [("authority", 5), ("upstream", 6)];

/// A well-known access log.
#[derive(Debug)]
pub(in crate::tune) struct Access {
    pub(super) named: Named,
    key: Option<&'static str>,
}

impl Access {
    pub(super) fn new(named: Named, key: Option<&str>) -> Result<Self, Error> {
        let keys = if named == Named::Envoy { &KEYS[..] } else { &KEYS[..2] };
        let key = key.map(|name| {
            keys.iter().copied().find(|key| *key == name).ok_or_else(|| {
                let near = nearest(name, keys.iter().copied()).or_else(|| Some("path".to_owned()));
                let (input, name) = ("--key".to_owned(), name.to_owned());
                Error::Missing { input, kind: "part of an access log", name, near }
            })
        });
        Ok(Self { named, key: key.transpose()? })
    }

    pub(super) fn find<'a>(&self, line: &'a [u8]) -> Result<Found<'a>, Why> {
        let tokens = tokens(line);
        match self.named {
            Named::Nginx => self.nginx(&tokens, false),
            Named::NginxUpstream => self.nginx(&tokens, true),
            Named::Envoy => self.envoy(&tokens),
        }
    }

    /// nginx: the times are the numbers with a point at the end of the line.
    fn nginx<'a>(&self, tokens: &[&'a [u8]], upstream: bool) -> Result<Found<'a>, Why> {
        let times = tokens.iter().rev().take_while(|token| is_time(value(token))).count();
        let mut times = tokens[tokens.len() - times..].iter().map(|token| value(token));
        let request_time = times.find(|time| *time != b"-").ok_or(Why::NoTime)?;
        let tries: Vec<_> = times.collect();
        let latency = match (upstream, &tries[..]) {
            (false, _) | (true, []) => request_time,
            (true, [only]) if only.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.')) => only,
            // No server was asked, or more than one.
            (true, _) => return Ok(Found::Failed),
        };
        let request = tokens.iter().position(|token| token.starts_with(b"\""));
        let status = request.and_then(|request| tokens.get(request + 1)).copied();
        if status.is_some_and(is_failure) {
            return Ok(Found::Failed);
        }
        let request = request.map_or(&b""[..], |request| value(tokens[request]));
        self.found(latency, part(self.key, request))
    }

    /// Envoy: the third number after the request and its status; the format that meshes have made
    /// of it has three words more before.
    fn envoy<'a>(&self, tokens: &[&'a [u8]]) -> Result<Found<'a>, Why> {
        let is_number = |token: &&[u8]| !token.is_empty() && token.iter().all(u8::is_ascii_digit);
        let are_numbers = |from: usize| {
            tokens.get(from..from + 3).is_some_and(|three| three.iter().all(is_number))
        };
        let duration =
            [4, 7].into_iter().find(|from| are_numbers(*from)).ok_or(Why::NoDuration)? + 2;
        if is_failure(tokens[2])
            || tokens[2] == b"0"
            || tokens[3].windows(2).any(|two| two == b"DC")
        {
            return Ok(Found::Failed);
        }
        let after = AFTER_DURATION.iter().find(|(name, _)| Some(*name) == self.key);
        let key = match after {
            Some((_, after)) => tokens.get(duration + after).map(|token| value(token)),
            None => part(self.key, value(tokens[1])),
        };
        self.found(tokens[duration], key)
    }

    fn found<'a>(&self, latency: &'a [u8], key: Option<&'a [u8]>) -> Result<Found<'a>, Why> {
        if self.key.is_some() && key.is_none() {
            return Err(Why::NoField);
        }
        let latency = Cow::Borrowed(latency);
        Ok(Found::Values(Wanted { latency, key: key.map(Cow::Borrowed), pair: None, times: None }))
    }
}

/// Whether the call failed: by the server, refused for a while, or given up by the client.
fn is_failure(status: &[u8]) -> bool {
    matches!(status, [b'5', _, _] | b"429" | b"499")
}

/// The method or the path, without its query.
fn part<'a>(key: Option<&str>, request: &'a [u8]) -> Option<&'a [u8]> {
    let mut words = request.split(|byte| *byte == b' ');
    let method = words.next();
    match key? {
        "method" => method.filter(|method| !method.is_empty()),
        _ => words.next()?.split(|byte| *byte == b'?').next(),
    }
}

/// Whether this is a time, a list of times, or the dash that stands for none.
fn is_time(value: &[u8]) -> bool {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b',' | b':' | b' ' | b'-');
    value == b"-" || value.contains(&b'.') && value.iter().all(is_part)
}

/// A token without a name before it and quotes around it.
fn value(token: &[u8]) -> &[u8] {
    let quoted = |token: &'_ [u8]| token.first() == Some(&b'"');
    let bare = match token.iter().position(|byte| *byte == b'=') {
        Some(equal) if !quoted(token) => &token[equal + 1..],
        _ => token,
    };
    bare.strip_prefix(b"\"").and_then(|bare| bare.strip_suffix(b"\"")).unwrap_or(bare)
}

/// The words of a line. What stands in quotes or brackets is one word.
fn tokens(line: &[u8]) -> Vec<&[u8]> {
    let (mut tokens, mut start, mut end) = (Vec::with_capacity(16), 0, None::<u8>);
    for (index, byte) in line.iter().enumerate() {
        if let Some(closing) = end {
            end = (*byte != closing).then_some(closing);
            continue;
        }
        match byte {
            b'"' => end = Some(b'"'),
            b'[' if index == start => end = Some(b']'),
            b' ' | b'\t' | b'\r' => {
                tokens.push(&line[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    tokens.push(&line[start.min(line.len())..]);
    tokens.retain(|token| !token.is_empty());
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const NGINX: &str = r#"10.0.0.1 - - [10/Oct/2025:13:55:36 +0000] "GET /a/b?c=1 HTTP/1.1" 200 612 "-" "curl 8.0""#;
    const ENVOY: &str = r#"[2025-04-15T20:17:00.310Z] "POST /api/v1 HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#;

    /// What is found: the latency and the key, `failed`, or what is wrong.
    fn find(named: Named, key: Option<&str>, line: &str) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match Access::new(named, key).unwrap().find(line.as_bytes()) {
            Ok(Found::Failed) => "failed".to_owned(),
            Ok(Found::Values(values)) => {
                let key = values.key.map(|key| format!(" {}", text(&key)));
                text(&values.latency) + &key.unwrap_or_default()
            }
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn nginx_has_its_times_at_the_end() {
        for (end, request, upstream) in [
            ("0.123", "0.123", "0.123"),
            ("0.123 0.100", "0.123", "0.100"),
            ("0.123 0.100\r", "0.123", "0.100"),
            (r#"rt=0.123 urt="0.100""#, "0.123", "0.100"),
            (r#"rt=0.123 urt="0.050, 0.070""#, "0.123", "failed"),
            ("0.123 0.050, 0.070", "0.123", "failed"),
            ("0.123 -", "0.123", "failed"),
            ("", "no $request_time at the end", "no $request_time at the end"),
            ("17", "no $request_time at the end", "no $request_time at the end"),
        ] {
            let line = format!("{NGINX} {end}");
            assert_eq!(find(Named::Nginx, None, &line), request, "{end}");
            assert_eq!(find(Named::NginxUpstream, None, &line), upstream, "{end}");
        }
    }

    #[test]
    fn failures_and_calls_that_were_given_up_do_not_count() {
        for status in ["500", "503", "429", "499"] {
            let line = format!("{NGINX} 0.001").replace(" 200 ", &format!(" {status} "));
            assert_eq!(find(Named::Nginx, None, &line), "failed");
        }
        assert_eq!(
            find(Named::Nginx, None, &format!("{NGINX} 0.001").replace(" 200 ", " 404 ")),
            "0.001"
        );
        assert_eq!(find(Named::Envoy, None, &ENVOY.replace(" 204 - ", " 0 DC ")), "failed");
        assert_eq!(find(Named::Envoy, None, &ENVOY.replace(" 204 - ", " 503 UF ")), "failed");
    }

    #[test]
    fn keys_are_parts_of_the_request() {
        let nginx = format!("{NGINX} 0.123");
        assert_eq!(find(Named::Nginx, Some("path"), &nginx), "0.123 /a/b");
        assert_eq!(find(Named::Nginx, Some("method"), &nginx), "0.123 GET");
        for (key, value) in [
            ("path", "226 /api/v1"),
            ("method", "226 POST"),
            ("authority", "226 locations"),
            ("upstream", "226 tcp://10.0.2.1:80"),
        ] {
            assert_eq!(find(Named::Envoy, Some(key), ENVOY), value);
        }
        assert!(Access::new(Named::Nginx, Some("authority")).is_err());
    }

    #[test]
    fn envoy_has_its_duration_after_the_bytes() {
        assert_eq!(find(Named::Envoy, None, ENVOY), "226");
        let mesh = ENVOY.replace(" 204 - ", r#" 204 - via_upstream - "-" "#);
        assert_eq!(find(Named::Envoy, Some("authority"), &mesh), "226 locations");
        assert_eq!(find(Named::Envoy, None, NGINX), "not Envoy's default format");
        assert_eq!(find(Named::Envoy, None, ""), "not Envoy's default format");
    }
}
