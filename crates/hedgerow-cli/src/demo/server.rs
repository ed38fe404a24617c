//! The embedded servers: HTTP/1.1 on 127.0.0.1, each on a free port, with a service time drawn for
//! every answer.

use std::{convert::Infallible, io, net::Ipv4Addr, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Request, Response, Uri, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    client::{ATTEMPT_HEADER, CALL_HEADER},
    draw::service_time,
    error::Error,
    files,
};

/// Running servers; dropping this stops them from accepting.
#[derive(Debug)]
pub(super) struct Servers {
    urls: Vec<Uri>,
    _accepting: JoinSet<()>,
}

impl Servers {
    pub(super) async fn start(count: u8, seed: u64) -> Result<Self, Error> {
        let mut urls = Vec::new();
        let mut accepting = JoinSet::new();
        for _ in 0..count {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(unlistened)?;
            urls.push(url(&listener).map_err(unlistened)?);
            accepting.spawn(accept(listener, seed));
        }
        Ok(Self { urls, _accepting: accepting })
    }

    /// One address per server.
    pub(super) fn urls(&self) -> &[Uri] {
        &self.urls
    }
}

fn unlistened(error: io::Error) -> Error {
    if files::ran_out(&error) { Error::OutOfFiles } else { Error::Listen(error) }
}

fn url(listener: &TcpListener) -> io::Result<Uri> {
    let address = listener.local_addr()?;
    format!("http://{address}/").parse().map_err(io::Error::other)
}

async fn accept(listener: TcpListener, seed: u64) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, seed));
            }
            // Out of open files, most likely: some are free again soon, and a tight loop would not
            // help.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Answers on one connection until the client closes it. A client that gives up on an answer closes
/// the connection, and the work ends with it: a loser costs the server nothing once it is dropped.
async fn serve(stream: TcpStream, seed: u64) {
    // Without it the answer may wait for the client's acknowledgement, which is no latency of ours.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, seed));
    // A connection that breaks is the client's to report.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    seed: u64,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let headers = request.headers();
    tokio::time::sleep(service_time(
        seed,
        number(headers, CALL_HEADER),
        number(headers, ATTEMPT_HEADER),
    ))
    .await;
    Ok(Response::new(Full::from("ok\n")))
}

/// The number in a header; 0 for a request that is not the demonstration's own.
fn number(headers: &HeaderMap, name: &str) -> u64 {
    headers.get(name).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or_default()
}
