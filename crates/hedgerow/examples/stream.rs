//! Answers that come token by token, from a service that stalls now and then.
//!
//! ```sh
//! cargo run -p hedgerow --example stream
//! ```
//!
//! The service accepts every request at once and sends keep-alives while it thinks. A client that
//! takes the first bytes for an answer never hedges; one that waits for the first token does.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use hedgerow::Hedge;
use tokio::time::{Instant, sleep};

/// What comes over the wire.
#[derive(Clone, Copy, PartialEq)]
enum Delta {
    KeepAlive,
    Token(&'static str),
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepAlive => f.write_str("."),
            Self::Token(token) => f.write_str(token),
        }
    }
}

/// The service is gone.
#[derive(Debug)]
struct Gone;

type Answer = Pin<Box<dyn Stream<Item = Result<Delta, Gone>> + Send>>;

const ANSWER: [&str; 8] = ["Two ", "roads ", "diverged ", "in ", "a ", "yellow ", "wood", "."];

/// How long the service thinks about an attempt: a third of the primaries get stuck.
fn thinks(question: u32, attempt: u32) -> Duration {
    let stuck = attempt == 0 && question % 3 == 2;
    Duration::from_millis(if stuck { 1_900 } else { 60 + u64::from(question * 7 % 30) })
}

/// Asks: accepted after 10 ms, a keep-alive every 40 ms, then the tokens.
async fn ask(question: u32, attempt: u32) -> Result<Answer, Gone> {
    sleep(Duration::from_millis(10)).await;
    let thinks = thinks(question, attempt).as_millis() / 40;
    let thinking = (0..thinks).map(|_| (40, Delta::KeepAlive));
    let answering = ANSWER.map(|token| (15, Delta::Token(token)));
    let deltas = stream::iter(thinking.chain(answering)).then(|(gap, delta)| async move {
        sleep(Duration::from_millis(gap)).await;
        Ok(delta)
    });
    Ok(Box::pin(deltas))
}

/// Reads an answer to its end, and draws it on one line.
async fn show(name: &str, question: u32, asked: Instant, answer: Result<Answer, Gone>) {
    let mut first = None;
    let mut line = String::new();
    let Ok(mut answer) = answer else { return println!("{name} {question}: the service is gone") };
    while let Some(Ok(delta)) = answer.next().await {
        if delta != Delta::KeepAlive {
            first.get_or_insert_with(|| asked.elapsed());
        }
        line += &delta.to_string();
    }
    let first = first.unwrap_or_default().as_millis();
    println!("{name} {question}: first token after {first:>4} ms   {line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let hedge = Hedge::after(Duration::from_millis(150));
    for question in 0..6 {
        let asked = Instant::now();
        show("direct", question, asked, ask(question, 0).await).await;
    }
    println!();
    for question in 0..6 {
        let asked = Instant::now();
        let report = hedge
            .stream(|attempt| ask(question, attempt.number()))
            .commit_when(|delta| *delta != Delta::KeepAlive)
            .settle()
            .await;
        let name = if report.winner() == Some(0) { "hedged" } else { "hedge!" };
        let answer = report.into_outcome().expect("nobody cancels");
        let answer = answer.map(|stream| -> Answer { Box::pin(stream) });
        show(name, question, asked, answer).await;
    }
}
