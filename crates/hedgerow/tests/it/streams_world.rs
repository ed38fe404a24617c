//! Scripted streams on a manual clock that keep account of everything they make.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::{Stream, StreamExt, stream};
use hedgerow::stream::HedgedStream;
use hedgerow::{
    Attempt, CancellationToken, Cancelled, Discarded, Hedge, Losers, ManualClock, NoAction, NoHook,
    Rules,
};

use crate::support::{lock, ms};

/// What a scripted stream does next, and how many milliseconds after what it did before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Step {
    /// An item that says nothing.
    Keep(u64),
    /// An item that decides.
    Text(u64),
    Fail(u64),
    Never,
}

/// A scripted call.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) hedge: Hedge,
    /// What each attempt's stream does before it ends; attempts past the script are silent.
    pub(crate) script: Vec<Vec<Step>>,
    /// How long each attempt takes to open its stream.
    pub(crate) open: u64,
    /// How many items that say nothing are kept.
    pub(crate) most: usize,
    pub(crate) cancel_at: Option<u64>,
    pub(crate) spawned: bool,
}

/// An item: whose, and its place in the stream.
pub(crate) type Item = (u8, usize);

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Failed {
    Item(Item),
    Cancelled,
}

impl From<Cancelled> for Failed {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A scripted stream.
pub(crate) type Items = Pin<Box<dyn Stream<Item = Result<Item, Failed>> + Send>>;

impl Case {
    pub(crate) fn steps(&self, attempt: u8) -> &[Step] {
        self.script.get(usize::from(attempt)).map_or(&[Step::Never], Vec::as_slice)
    }

    /// Every item of a stream, errors too, up to where it is silent for ever.
    pub(crate) fn items(&self, attempt: u8) -> Vec<Result<Item, Failed>> {
        let items = self.steps(attempt).iter().enumerate().map_while(|(place, step)| match step {
            Step::Keep(_) | Step::Text(_) => Some(Ok((attempt, place))),
            Step::Fail(_) => Some(Err(Failed::Item((attempt, place)))),
            Step::Never => None,
        });
        items.collect()
    }

    /// The error that a stream fails with before it commits, if it does.
    pub(crate) fn failure(&self, attempt: u8) -> Option<Failed> {
        let mut kept = 0;
        for (place, step) in self.steps(attempt).iter().enumerate() {
            match step {
                Step::Keep(_) if kept < self.most => kept += 1,
                Step::Fail(_) => return Some(Failed::Item((attempt, place))),
                Step::Keep(_) | Step::Text(_) | Step::Never => return None,
            }
        }
        None
    }
}

/// What became of everything, as it saw itself.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) opened: Vec<u8>,
    pub(crate) closed: Vec<u8>,
    pub(crate) discarded: Vec<u8>,
    pub(crate) tokens: BTreeMap<u8, CancellationToken>,
    /// The call was answered with a stream.
    pub(crate) committed: bool,
    /// What the consumer read.
    pub(crate) read: Vec<Result<Item, Failed>>,
}

pub(crate) type World = Arc<Mutex<Seen>>;

/// A stream that is open.
struct Open(World, u8);

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.0).closed.push(self.1);
    }
}

/// The work and the rules of a case.
#[derive(Clone)]
pub(crate) struct Play {
    pub(crate) case: Case,
    pub(crate) clock: ManualClock,
    pub(crate) world: World,
}

impl Play {
    /// Opens the stream of an attempt. It ends when its attempt is told to stop.
    pub(crate) async fn open(self, attempt: Attempt) -> Result<Items, Failed> {
        let token = attempt.token().expect("the call keeps tokens");
        lock(&self.world).tokens.insert(attempt.hedge_number(), token.clone());
        if self.case.open > 0 {
            self.clock.sleep(ms(self.case.open)).await;
        }
        Ok(Box::pin(self.stream(attempt.hedge_number()).take_until(token.cancelled_owned())))
    }

    fn stream(self, number: u8) -> impl Stream<Item = Result<Item, Failed>> + Send {
        lock(&self.world).opened.push(number);
        let open = Open(self.world, number);
        let steps = self.case.steps(number).to_vec().into_iter().enumerate();
        let clock = self.clock;
        let detached = self.case.hedge.policy().losers == Losers::Detach;
        stream::unfold((steps, open), move |(mut steps, open)| {
            let clock = clock.clone();
            async move {
                let (place, step) = steps.next()?;
                let after = match step {
                    Step::Keep(after) | Step::Text(after) | Step::Fail(after) => after,
                    // A detached attempt that never ends is never over.
                    Step::Never if detached => {
                        clock.sleep(ms(700)).await;
                        return None;
                    }
                    Step::Never => return pending().await,
                };
                if after > 0 {
                    clock.sleep(ms(after)).await;
                }
                let item = (number, place);
                let failed = matches!(step, Step::Fail(_));
                let item = if failed { Err(Failed::Item(item)) } else { Ok(item) };
                Some((item, (steps, open)))
            }
        })
    }

    /// Which items decide.
    pub(crate) fn decides(&self) -> impl FnMut(&Item) -> bool + Clone + Send + use<> {
        let case = self.case.clone();
        move |(attempt, place)| matches!(case.steps(*attempt)[*place], Step::Text(_))
    }
}

impl Rules<HedgedStream<Items>, Failed> for Play {
    type Action = NoAction<HedgedStream<Items>, Failed>;
    type Hook = NoHook;

    fn on_discard(&mut self, discarded: Discarded<HedgedStream<Items>, Failed>) {
        if discarded.outcome.is_ok() {
            lock(&self.world).discarded.push(discarded.hedge_number);
        }
    }
}
