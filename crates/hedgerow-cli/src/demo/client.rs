//! The client: one call, direct or hedged, over the servers of the run.

use std::{
    error, fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use hedgerow::{Hedge, Report};
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, StatusCode, Uri,
    header::{HeaderValue, USER_AGENT},
};
use hyper_util::{
    client::legacy::{Client as Pool, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::{Instant, timeout_at};

use super::{error::Error, files, names::Addresses};

/// Time after which a call without an answer has failed, so that a server that never answers cannot
/// hold up the run.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(10);

/// Tells a server which call a request belongs to.
pub(super) const CALL_HEADER: &str = "hedgerow-call";
/// Tells a server which attempt of its call a request is; 0 is the primary.
pub(super) const ATTEMPT_HEADER: &str = "hedgerow-attempt";

/// Why a call has no good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// No answer within [`CALL_LIMIT`].
    TimedOut,
    /// An answer that says no.
    Status(StatusCode),
    /// Not sent, because no more files may be opened.
    OutOfFiles,
    /// No answer, because of the connection.
    Transport(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => write!(f, "no answer within {CALL_LIMIT:?}"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::OutOfFiles => f.write_str("no more files may be opened"),
            Self::Transport(why) => f.write_str(why),
        }
    }
}

/// What became of one call.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) failure: Option<Failure>,
    /// Whether a hedge gave the good answer.
    pub(super) won_by_hedge: bool,
}

/// Requests sent for one call, the primary included. Kept outside of the call, because one that
/// ends early cannot tell any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent(Arc<AtomicU32>);

impl Sent {
    pub(super) fn count_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A pooled HTTP/1.1 client and the servers it spreads calls over.
#[derive(Debug)]
pub(super) struct Client {
    pool: Pool<HttpConnector<Addresses>, Empty<Bytes>>,
    targets: Vec<Uri>,
}

impl Client {
    /// A client for these servers, whose names have these addresses.
    pub(super) fn new(targets: Vec<Uri>, addresses: Addresses) -> Self {
        let mut connector = HttpConnector::new_with_resolver(addresses);
        connector.set_nodelay(true);
        let pool =
            Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Self { pool, targets }
    }

    /// Asks every server once. Overload (5xx) is let through, since a run may well be about that.
    pub(super) async fn check(&self) -> Result<(), Error> {
        for (number, url) in (0..).zip(&self.targets) {
            let deadline = Instant::now() + CALL_LIMIT;
            match self.direct(number, deadline, &Sent::default()).await.failure {
                Some(Failure::Status(status)) if !status.is_server_error() => {
                    return Err(Error::Refused { url: url.clone(), status });
                }
                None | Some(Failure::Status(_)) => {}
                Some(Failure::OutOfFiles) => return Err(Error::OutOfFiles),
                Some(other) => {
                    return Err(Error::Unreachable { url: url.clone(), why: other.to_string() });
                }
            }
        }
        Ok(())
    }

    /// One call as a program without hedging makes it.
    pub(super) async fn direct(&self, call: u32, deadline: Instant, sent: &Sent) -> Answer {
        sent.count_one();
        let outcome = timeout_at(deadline, self.attempt(call, 0)).await;
        Answer { failure: failure(outcome.unwrap_or(Err(Failure::TimedOut))), won_by_hedge: false }
    }

    /// The same call, hedged.
    pub(super) async fn hedged(
        &self,
        hedge: &Hedge,
        call: u32,
        deadline: Instant,
        sent: &Sent,
    ) -> Answer {
        let settled = hedge.call(|attempt| {
            sent.count_one();
            self.attempt(call, attempt.number())
        });
        let report = timeout_at(deadline, settled.settle()).await.ok();
        let winner = report.as_ref().and_then(Report::winner);
        let outcome = report.and_then(Report::into_outcome);
        let failure = failure(outcome.unwrap_or(Err(Failure::TimedOut)));
        let won_by_hedge = failure.is_none() && winner.is_some_and(|attempt| attempt > 0);
        Answer { failure, won_by_hedge }
    }

    /// One request, its answer read to the end so that the connection can serve the next one.
    ///
    /// A status of 500 and above is a failure worth another attempt; any other status decides the
    /// call.
    async fn attempt(&self, call: u32, attempt: u32) -> Result<StatusCode, Failure> {
        let response = self
            .pool
            .request(self.request(call, attempt))
            .await
            .map_err(|error| transport(&error))?;
        let status = response.status();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| transport(&error))?;
        }
        if status.as_u16() >= 500 { Err(Failure::Status(status)) } else { Ok(status) }
    }

    fn request(&self, call: u32, attempt: u32) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        if let Some(target) = target(&self.targets, call, attempt) {
            *request.uri_mut() = target.clone();
        }
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static("hedgerow-demo"));
        headers.insert(CALL_HEADER, HeaderValue::from(call));
        headers.insert(ATTEMPT_HEADER, HeaderValue::from(attempt));
        request
    }
}

/// Primaries go round the servers in turn, and each hedge goes to the one after the attempt before
/// it.
fn target(targets: &[Uri], call: u32, attempt: u32) -> Option<&Uri> {
    let turn = usize::try_from(u64::from(call) + u64::from(attempt)).ok()?;
    targets.get(turn.checked_rem(targets.len())?)
}

/// A status that says no is a failed call even where another attempt would not have changed it, and
/// so is one that says nothing, such as a change of protocol.
fn failure(outcome: Result<StatusCode, Failure>) -> Option<Failure> {
    match outcome {
        Ok(status) if status.is_success() || status.is_redirection() => None,
        Ok(status) => Some(Failure::Status(status)),
        Err(failure) => Some(failure),
    }
}

/// The innermost cause, which is the one that a person can act on ("Connection refused").
fn transport(error: &(dyn error::Error + 'static)) -> Failure {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<io::Error>() {
        Some(error) if files::ran_out(error) => Failure::OutOfFiles,
        _ => Failure::Transport(cause.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hedge_goes_to_another_server_than_its_primary() {
        let targets = [Uri::from_static("http://a/"), Uri::from_static("http://b/")];
        for call in 0..4 {
            assert_ne!(target(&targets, call, 0), target(&targets, call, 1));
        }
        assert_eq!(target(&targets[..1], 7, 0), target(&targets[..1], 7, 1));
        assert_eq!(target(&[], 0, 0), None);
    }

    #[test]
    fn a_refusal_is_a_failed_call_and_a_redirect_is_not() {
        for (status, is_good) in [
            (101, false),
            (199, false),
            (200, true),
            (204, true),
            (302, true),
            (400, false),
            (404, false),
            (499, false),
            (600, false),
            (999, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let expected = (!is_good).then_some(Failure::Status(status));
            assert_eq!(failure(Ok(status)), expected);
        }
        assert_eq!(failure(Err(Failure::TimedOut)), Some(Failure::TimedOut));
    }
}
