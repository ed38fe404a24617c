//! The addresses of the person's own servers, looked up once before the run.
//!
//! A thread of its own asks the system, which may take its time and cannot be interrupted: nothing
//! waits for the thread when the person has pressed Ctrl-C. During the run no call has to ask, and
//! none counts how long an answer took.

use std::{
    collections::{HashMap, HashSet},
    future::{Ready, ready},
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    task::{Context, Poll},
    thread, vec,
};

use hyper::Uri;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};
use tower_service::Service;

use super::{client::CALL_LIMIT, error::Error};

/// Hosts and their addresses. The port is another's to add.
#[derive(Debug, Clone, Default)]
pub(super) struct Addresses(Arc<HashMap<String, Vec<SocketAddr>>>);

type Found = io::Result<Vec<SocketAddr>>;

impl Addresses {
    /// Looks up the hosts of these URLs, those that are addresses already left out.
    pub(super) async fn of(urls: &[Uri]) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        let hosts = urls.iter().filter_map(Uri::host).filter(|host| !is_address(host));
        let hosts: Vec<_> = hosts.filter(|host| seen.insert(*host)).map(str::to_owned).collect();
        if hosts.is_empty() {
            return Ok(Self::default());
        }
        let look_up = |host: &str| (host, 0).to_socket_addrs().map(Iterator::collect);
        let mut answers = ask(hosts.clone(), look_up).map_err(Error::NameThread)?;
        let mut addresses = HashMap::new();
        for host in hosts {
            let why = match timeout(CALL_LIMIT, answers.recv()).await {
                Ok(Some(Ok(found))) if !found.is_empty() => {
                    addresses.insert(host, found);
                    continue;
                }
                Ok(Some(Err(error))) => error.to_string(),
                Ok(_) => "it has no address".to_owned(),
                Err(_) => format!("no answer within {CALL_LIMIT:?}"),
            };
            return Err(Error::NoAddress { host, why });
        }
        Ok(Self(Arc::new(addresses)))
    }
}

/// Looks up one host after the other on a thread of its own, which ends when nobody listens.
fn ask(
    hosts: Vec<String>,
    look_up: impl Fn(&str) -> Found + Send + 'static,
) -> io::Result<UnboundedReceiver<Found>> {
    let (tell, answers) = unbounded_channel();
    let all = move || {
        // Fails when nobody listens any more.
        let _ = hosts.iter().try_for_each(|host| tell.send(look_up(host)));
    };
    thread::Builder::new().name("names".to_owned()).spawn(all)?;
    Ok(answers)
}

fn is_address(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

impl Service<Name> for Addresses {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Ready<Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, host: Name) -> Self::Future {
        let found = self.0.get(host.as_str()).cloned();
        ready(found.map(Vec::into_iter).ok_or_else(|| io::ErrorKind::NotFound.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(urls: &[&str]) -> Vec<Uri> {
        urls.iter().map(|url| url.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn addresses_need_no_look_up() {
        let urls = urls(&["http://127.0.0.1:1/", "http://[::1]/"]);
        assert!(Addresses::of(&urls).await.unwrap().0.is_empty());
    }

    #[tokio::test]
    async fn every_host_is_looked_up_once() {
        let urls = urls(&["http://localhost:1/a", "http://localhost:2/b"]);
        let mut addresses = Addresses::of(&urls).await.unwrap();
        assert_eq!(addresses.0.len(), 1);
        let found = addresses.call("localhost".parse().unwrap()).await.unwrap();
        assert!(found.clone().count() > 0 && found.clone().all(|found| found.ip().is_loopback()));
        assert!(addresses.call("elsewhere".parse().unwrap()).await.is_err());
    }

    #[tokio::test]
    async fn the_thread_ends_when_nobody_listens() {
        let hosts = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let (asked, mut heard) = unbounded_channel();
        let (go, wait) = std::sync::mpsc::channel();
        let look_up = move |host: &str| {
            asked.send(host.to_owned()).unwrap();
            let _: Result<(), _> = wait.recv();
            Ok(Vec::new())
        };
        let mut answers = ask(hosts, look_up).unwrap();
        go.send(()).unwrap();
        assert_eq!(answers.recv().await.unwrap().unwrap(), []);
        drop((answers, go));
        assert_eq!(heard.recv().await.unwrap(), "a");
        assert_eq!(heard.recv().await.unwrap(), "b");
        assert_eq!(heard.recv().await, None);
    }
}
