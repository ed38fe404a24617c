//! What an attempt knows about itself.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::late::Late;
use crate::properties::Properties;

/// One execution of the work, as the work sees it.
///
/// Cheap to clone. What few callers need (the token, properties, an execution-wide number) is made
/// only for calls that ask for it; see [`HedgedCall`](crate::HedgedCall).
#[derive(Clone, Debug)]
pub struct Attempt {
    pub(crate) label: Label,
    pub(crate) shared: Option<Arc<Shared>>,
}

/// The numbers of an attempt, in one word: what is written in pieces and then copied as a whole makes
/// the processor wait, at every strategy of a pipeline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(u64);

#[expect(clippy::cast_possible_truncation, reason = "it takes the number out of the word")]
impl Label {
    const HEDGE: u32 = 32;
    const TARGET: u32 = 40;

    #[inline]
    const fn new(number: u32, hedge: u8) -> Self {
        Self(number as u64 | (hedge as u64) << Self::HEDGE)
    }

    #[inline]
    const fn number(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    const fn hedge(self) -> u8 {
        (self.0 >> Self::HEDGE) as u8
    }

    /// The target; kept as one more than it is.
    #[inline]
    fn target(self) -> Option<usize> {
        usize::try_from(self.0 >> Self::TARGET).unwrap_or(usize::MAX).checked_sub(1)
    }
}

/// What strategies around an attempt change of it.
#[cfg_attr(not(feature = "pipeline"), expect(dead_code, reason = "for pipelines"))]
impl Label {
    /// The same attempt under another number.
    #[inline]
    pub(crate) fn renumbered(self, number: u32) -> Self {
        Self(self.0 >> Self::HEDGE << Self::HEDGE | u64::from(number))
    }

    /// The same attempt, sent to this target.
    #[inline]
    pub(crate) fn sent_to(self, target: u16) -> Self {
        Self(Self::new(self.number(), self.hedge()).0 | (u64::from(target) + 1) << Self::TARGET)
    }

    /// The same attempt, sent to where another goes.
    #[inline]
    pub(crate) fn sent_like(self, other: Self) -> Self {
        let target = other.0 >> Self::TARGET << Self::TARGET;
        Self(Self::new(self.number(), self.hedge()).0 | target)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Label")
            .field("number", &self.number())
            .field("hedge", &self.hedge())
            .field("target", &self.target())
            .finish()
    }
}

/// What an attempt of a tracked call shares with the call.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) token: CancellationToken,
    pub(crate) properties: Properties,
    pub(crate) deadline: Option<Instant>,
    /// What the execution is called.
    pub(crate) operation: Option<Arc<str>>,
    /// Set when the attempt is detached: where to report its end.
    pub(crate) late: OnceLock<Late>,
}

impl Shared {
    /// A token of its own, and no properties yet.
    pub(crate) fn new(deadline: Option<Instant>, operation: Option<Arc<str>>) -> Self {
        Self {
            token: CancellationToken::new(),
            properties: Properties::new(),
            deadline,
            operation,
            late: OnceLock::new(),
        }
    }
}

impl Attempt {
    /// An attempt of a call that tracks nothing.
    #[inline]
    pub(crate) const fn plain(hedge: u8) -> Self {
        Self { label: Label::new(hedge as u32, hedge), shared: None }
    }

    /// The same, numbered together with other calls.
    pub(crate) const fn numbered(number: u32, hedge: u8) -> Self {
        Self { label: Label::new(number, hedge), shared: None }
    }

    pub(crate) fn tracked(number: u32, hedge: u8, shared: Shared) -> Self {
        Self { label: Label::new(number, hedge), shared: Some(Arc::new(shared)) }
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Shared>> {
        self.shared.as_ref()
    }

    /// The number of this attempt in the whole execution, in the order in which attempts start:
    /// 0, 1, 2, ... It is never repeated, however retries and hedges nest, as long as the calls
    /// share an [`AttemptCounter`], so it can key idempotency. A hedge takes its number when its
    /// turn has come: one that then does not start leaves a gap, and one that waits for a hook
    /// keeps its place. Without a counter it equals [`hedge_number`](Attempt::hedge_number).
    pub fn number(&self) -> u32 {
        self.label.number()
    }

    /// The number of this attempt in this call: 0 is the primary, 1 the first hedge.
    pub fn hedge_number(&self) -> u8 {
        self.label.hedge()
    }

    /// Which of its targets a pipeline sends this attempt to, counted from 0; `None` unless it has a
    /// strategy for that (`PerTarget`).
    pub fn target(&self) -> Option<usize> {
        self.label.target()
    }

    /// The token that fires when this attempt loses, when the caller cancels and when the call is
    /// dropped; never for the winner, and never under [`Losers::Detach`](crate::Losers::Detach).
    ///
    /// `None` if the call keeps no tokens: then the attempt's future is simply dropped, and that
    /// is how it is told. A call keeps tokens if it says
    /// [`tokens`](crate::HedgedCall::tokens), if its losers are joined or detached, if it is
    /// spawned or [`blocking`](crate::Hedge::blocking), or if it is given a token or properties of its own;
    /// an execution of a pipeline also if it is given a deadline or a name.
    pub fn token(&self) -> Option<CancellationToken> {
        self.shared.as_ref().map(|shared| shared.token.clone())
    }

    /// Whether this attempt was told to stop: what work that blocks its thread asks now and then.
    pub fn is_cancelled(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.token.is_cancelled())
    }

    /// Waits until this attempt is told to stop; for ever if it never is.
    pub async fn cancelled(&self) {
        match &self.shared {
            Some(shared) => shared.token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Runs `work` until it ends or this attempt is told to stop; `None` if it was stopped. Where
    /// losers are joined this is what makes them end.
    pub async fn until_cancelled<W: Future>(&self, work: W) -> Option<W::Output> {
        match &self.shared {
            Some(shared) => shared.token.run_until_cancelled(work).await,
            None => Some(work.await),
        }
    }

    /// This attempt's copy of the call's properties. What it writes reaches the caller only if it
    /// wins. Empty, and read by nobody, if the call was given none.
    pub fn properties(&self) -> Properties {
        self.shared.as_ref().map_or_else(Properties::new, |shared| shared.properties.clone())
    }

    /// What the caller says this is, for logs and traces; only executions of a pipeline can be
    /// given a name.
    pub fn operation(&self) -> Option<&str> {
        self.shared.as_ref().and_then(|shared| shared.operation.as_deref())
    }

    /// When the caller stops waiting, on the clock of the call, if it said so.
    pub fn deadline(&self) -> Option<Instant> {
        self.shared.as_ref().and_then(|shared| shared.deadline)
    }
}

/// Numbers the attempts of one execution, across every call that shares it.
///
/// ```
/// use hedgerow::AttemptCounter;
///
/// let counter = AttemptCounter::new();
/// assert_eq!((counter.next(), counter.clone().next()), (0, 1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct AttemptCounter(pub(crate) Arc<AtomicU32>);

impl AttemptCounter {
    /// Starts at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next number.
    pub fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
