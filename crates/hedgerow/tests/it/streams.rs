//! Scripted streams.

use std::future::{Ready, pending, ready};
use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};
use hedgerow::Attempt;
use tokio::time::{Instant, sleep_until};

use crate::support::{Answer, Notes, ms};

/// A stream that a script makes.
pub(crate) type Items = Pin<Box<dyn Stream<Item = Answer> + Send>>;

/// What a scripted stream does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    Item(Answer),
    Panic(&'static str),
    End,
    Never,
}

/// What a stream does, and how many milliseconds after it was opened. It ends after the last step,
/// at once.
pub(crate) type Steps = Vec<(u64, Next)>;

pub(crate) const fn item(at: u64, item: &'static str) -> (u64, Next) {
    (at, Next::Item(Ok(item)))
}

pub(crate) const fn fails(at: u64, error: &'static str) -> (u64, Next) {
    (at, Next::Item(Err(error)))
}

pub(crate) const fn ends(at: u64) -> (u64, Next) {
    (at, Next::End)
}

pub(crate) const fn silent() -> (u64, Next) {
    (0, Next::Never)
}

pub(crate) const fn breaks(at: u64, text: &'static str) -> (u64, Next) {
    (at, Next::Panic(text))
}

/// A stream that plays steps on tokio's clock. What is due is ready at once; that it is dropped is
/// noted.
pub(crate) fn play(notes: &Notes, number: u8, steps: Steps) -> Items {
    let (start, guard) = (Instant::now(), notes.guard(format!("S{number}")));
    Box::pin(stream::unfold((steps.into_iter(), guard), move |(mut steps, guard)| async move {
        let (at, next) = steps.next()?;
        if at > 0 {
            sleep_until(start + ms(at)).await;
        }
        match next {
            Next::Item(item) => Some((item, (steps, guard))),
            Next::Panic(text) => std::panic::panic_any(text),
            Next::End => None,
            Next::Never => pending().await,
        }
    }))
}

/// Opens a stream for each attempt at once, which does what the script says. Attempts past the
/// script never have an item.
pub(crate) fn open<const N: usize>(
    notes: &Notes,
    script: [Steps; N],
) -> impl FnMut(Attempt) -> Ready<Result<Items, &'static str>> + Clone + Send + use<N> {
    let notes = notes.clone();
    move |attempt| {
        let number = attempt.hedge_number();
        let steps = script.get(usize::from(number)).cloned();
        ready(Ok(play(&notes, number, steps.unwrap_or_else(|| vec![silent()]))))
    }
}

/// Whether an item says something: all but those that begin with `keep`.
pub(crate) fn says_something(item: &&'static str) -> bool {
    !item.starts_with("keep")
}

/// Reads a stream to its end; each item with the millisecond at which it came.
pub(crate) async fn read<S>(notes: &Notes, stream: S) -> Vec<(Answer, u64)>
where
    S: Stream<Item = Answer>,
{
    stream.map(|item| (item, notes.at())).collect().await
}
