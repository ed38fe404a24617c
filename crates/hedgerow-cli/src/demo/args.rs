//! What the person may ask for, and the limits of it.
//!
//! Values are judged while they are parsed, so that a wrong one is refused with its option's name
//! and exit status 2 before anything has been started.

use std::{ffi::OsStr, time::Duration};

use clap::{
    Arg, Args, Command,
    builder::TypedValueParser,
    error::{Error as ClapError, ErrorKind},
    value_parser,
};
use hyper::{Uri, http::uri::Scheme};

use super::{
    client::CALL_LIMIT,
    error::{Error, cut},
};

/// Servers that a run may use, embedded or not.
const MAX_UPSTREAMS: usize = 64;

const EXAMPLES: &str = "\
Examples:
  hedgerow demo                               the whole picture in about 15 seconds
  hedgerow demo --delay 50ms --max-hedges 2   a later hedge, and a second one
  hedgerow demo --upstreams 1                 hedges go to the same server as the primary
  hedgerow demo --seconds 2 --json            figures for a program
  hedgerow demo --url http://127.0.0.1:8080/health http://127.0.0.1:8081/health
                                              your own servers instead of the embedded ones

Latency counts from the moment a call was due, not from when it was sent, and for failed calls
too. `requests` counts what was sent, hedges included; `extra load` is hedges over primaries.
Exit status: 0 done, 1 the run failed, 2 bad input, 130 stopped before there was a result.";

/// Show what hedging does to the tail of real HTTP servers that stall now and then
///
/// Starts HTTP servers on 127.0.0.1 that mostly answer in a few milliseconds but stall for some
/// hundred now and then, sends the same open-loop load without and with hedging, and prints both
/// tails.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Length of each of the two phases, 0.1 to 60 seconds
    #[arg(
        long,
        default_value = "7",
        value_name = "NUMBER",
        allow_hyphen_values = true,
        value_parser = Checked(parse_seconds)
    )]
    pub(super) seconds: Duration,

    /// Calls per second, 1 to 1000; hedges come on top
    #[arg(
        long,
        default_value_t = 500,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        value_parser = Checked(parse_rate)
    )]
    pub(super) rate: u32,

    /// Time without an answer after which a hedge starts, with its unit: 20ms, 1.5s
    #[arg(
        long,
        default_value = "20ms",
        value_name = "DURATION",
        allow_hyphen_values = true,
        value_parser = Checked(parse_delay)
    )]
    pub(super) delay: Duration,

    /// Hedges that may follow a primary, 0 to 10
    #[arg(
        long,
        default_value_t = 1,
        value_name = "COUNT",
        allow_hyphen_values = true,
        value_parser = value_parser!(u8).range(0..=10)
    )]
    pub(super) max_hedges: u8,

    /// Embedded servers to start, 1 to 64; a hedge goes to another one than its primary
    #[arg(
        long,
        default_value_t = 3,
        value_name = "COUNT",
        allow_hyphen_values = true,
        conflicts_with = "url",
        value_parser = value_parser!(u8).range(1..=64)
    )]
    pub(super) upstreams: u8,

    /// Send GET requests to your own servers instead of the embedded ones; http:// only
    ///
    /// Every URL is asked once before the run. At most 512 requests are in flight at once, and each
    /// carries the headers `hedgerow-call` and `hedgerow-attempt` (0 for the primary), so that your
    /// logs can tell them apart.
    #[arg(long, num_args = 1.., value_name = "URL", value_parser = Checked(parse_url))]
    pub(super) url: Vec<Uri>,

    /// Number that decides arrivals and stalls; the same seed gives the same run
    #[arg(
        long,
        default_value_t = 1,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        value_parser = Checked(parse_seed)
    )]
    pub(super) seed: u64,

    /// Print one JSON object instead of the table and the plot
    #[arg(long)]
    pub(super) json: bool,
}

impl DemoArgs {
    /// The person's own servers, if any were named.
    pub(super) fn own_servers(&self) -> Result<Option<Vec<Uri>>, Error> {
        match self.url.len() {
            0 => Ok(None),
            1..=MAX_UPSTREAMS => Ok(Some(self.url.clone())),
            count => Err(Error::TooManyUrls { count, limit: MAX_UPSTREAMS }),
        }
    }
}

/// Reads a value, and refuses a wrong one with its option, as much of it as a person needs to know
/// it again, and the remedy.
#[derive(Debug, Clone)]
struct Checked<T>(fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Checked<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        option: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, ClapError> {
        let Some(text) = value.to_str() else {
            return Err(ClapError::new(ErrorKind::InvalidUtf8).with_cmd(command));
        };
        let Self(parse) = self;
        parse(text).map_err(|why| {
            let option = option.map(ToString::to_string).unwrap_or_default();
            let message = format!(
                "invalid value '{}' for '{option}': {why}\n\n\
                 For more information, try '--help'.\n",
                cut(text)
            );
            ClapError::raw(ErrorKind::ValueValidation, message)
        })
    }
}

fn parse_rate(text: &str) -> Result<u32, String> {
    let rate = text.trim().parse().ok().filter(|rate| (1..=1000).contains(rate));
    rate.ok_or_else(|| "expected a whole number from 1 to 1000, such as 500".to_owned())
}

fn parse_seed(text: &str) -> Result<u64, String> {
    let seed = text.trim().parse();
    seed.map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .trim()
        .parse()
        .map_err(|_| "expected a plain number of seconds, such as 7 or 0.5".to_owned())?;
    if (0.1..=60.0).contains(&number) {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err("expected between 0.1 and 60 seconds".to_owned())
    }
}

fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = hedgerow::text::parse_duration(text)?;
    if delay < CALL_LIMIT {
        Ok(delay)
    } else {
        Err(format!(
            "a call is given up after {CALL_LIMIT:?}, so no hedge would ever start; \
             expected a shorter delay"
        ))
    }
}

fn parse_url(text: &str) -> Result<Uri, String> {
    const EXAMPLE: &str = "expected something like http://127.0.0.1:8080/path";
    let uri: Uri = text.parse().map_err(|error| format!("{error}; {EXAMPLE}"))?;
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(scheme) if *scheme == Scheme::HTTPS => {
            return Err(
                "https is not supported by the demo; name a plain http:// address of the server"
                    .to_owned(),
            );
        }
        Some(scheme) => return Err(format!("`{scheme}` is not supported; expected http://")),
        None => {
            return Err("the scheme is missing; write it out as http://host:port/path".to_owned());
        }
    }
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return Err(format!("the host is missing; {EXAMPLE}"));
    };
    if authority.as_str().contains('@') {
        return Err("a user name or password would not be sent; leave it out".to_owned());
    }
    // A port that is no number from 1 on would silently become port 80, and somebody else's server.
    let port_named = authority.as_str() != authority.host();
    if port_named && authority.port_u16().is_none_or(|port| port == 0) {
        return Err("the port is not a number from 1 to 65535".to_owned());
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use std::iter;

    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        demo: DemoArgs,
    }

    fn parse(args: &[&str]) -> Result<DemoArgs, String> {
        let line = iter::once("demo").chain(args.iter().copied());
        Cli::try_parse_from(line).map(|cli| cli.demo).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_taken_when_nothing_is_said() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.seconds, Duration::from_secs(7));
        assert_eq!(args.delay, Duration::from_millis(20));
        assert!(args.own_servers().unwrap().is_none());
    }

    #[test]
    fn bad_values_are_refused_with_the_option_and_the_value() {
        let table: &[(&[&str], &str)] = &[
            (&["--seconds", "0"], "0.1"),
            (&["--seconds", "-3"], "0.1"),
            (&["--seconds", "NaN"], "0.1"),
            (&["--seconds", "inf"], "60"),
            (&["--seconds", "1e300"], "60"),
            (&["--seconds", "soon"], "number of seconds"),
            (&["--rate", "0"], "from 1 to 1000"),
            (&["--rate", "-1"], "--rate"),
            (&["--rate", "1e3"], "a whole number from 1 to 1000"),
            (&["--rate", "1001"], "from 1 to 1000"),
            (&["--rate", "99999999999999"], "1000"),
            (&["--max-hedges", "11"], "0..=10"),
            (&["--upstreams", "0"], "1..=64"),
            (&["--upstreams", "65"], "1..=64"),
            (&["--delay", "20"], "needs a unit"),
            (&["--delay", "-5ms"], "--delay"),
            (&["--delay", "5 parsecs"], "--delay"),
            (&["--delay", "1h"], "shorter delay"),
            (&["--seed", "-1"], "--seed"),
            (&["--seed", "18446744073709551616"], "from 0 to 18446744073709551615"),
        ];
        for (args, expected) in table {
            let message = parse(args).unwrap_err();
            for part in [args[0], args[1], expected] {
                assert!(message.contains(part), "{args:?} should mention {part}: {message}");
            }
        }
    }

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        let table = [
            ("https://example.com/", "https is not supported"),
            ("ftp://example.com/", "`ftp` is not supported"),
            ("example.com", "scheme is missing"),
            ("/path", "scheme is missing"),
            ("http://user:pw@example.com/", "user name"),
            ("http://", "--url"),
            ("http://127.0.0.1:99999/", "port"),
            ("http://127.0.0.1:0/", "port"),
            ("http://[::1]:/", "port"),
            ("not a url", "http://127.0.0.1:8080/path"),
        ];
        for (url, expected) in table {
            let message = parse(&["--url", url]).unwrap_err();
            assert!(
                message.contains(expected) && message.contains(url),
                "{url} should say {expected}: {message}"
            );
        }
        let args = parse(&["--url", "http://127.0.0.1:1/a", "http://[::1]:2/b?c=d"]).unwrap();
        assert_eq!(args.own_servers().unwrap().unwrap().len(), 2);
    }

    #[test]
    fn a_long_value_is_not_repeated() {
        let long = format!("http://user@host/{}", "x".repeat(100_000));
        for option in ["--url", "--delay", "--seconds", "--rate", "--seed"] {
            let message = parse(&[option, &long]).unwrap_err();
            assert!(message.contains("http://user@host/xxx") && message.len() < 400, "{message}");
        }
    }

    #[test]
    fn a_crowd_of_addresses_is_refused() {
        let mut args = vec!["--url"];
        args.resize(MAX_UPSTREAMS + 2, "http://127.0.0.1:1/");
        let error = parse(&args).unwrap().own_servers().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("65"), "{error}");
    }

    #[test]
    fn own_servers_and_embedded_ones_exclude_each_other() {
        let message = parse(&["--url", "http://127.0.0.1:1/", "--upstreams", "2"]).unwrap_err();
        assert!(message.contains("cannot be used with"), "{message}");
    }
}
