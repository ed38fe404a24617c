//! What the strategies of a pipeline do, told as it happens.

use std::time::Duration;

/// Something that a strategy of a pipeline did, or an attempt of its work.
///
/// Told to the same [`Observer`](crate::Observer) as the events of hedged calls, by
/// [`Observer::strategy`](crate::Observer::strategy).
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct StrategyEvent<'a> {
    /// The pipeline's name.
    pub pipeline: &'a str,
    /// The strategy's name in it; `work` for what is told of the work itself, and `pipeline` for
    /// the execution as a whole.
    pub strategy: &'a str,
    /// What the caller says the execution is, if it does.
    pub operation: Option<&'a str>,
    /// Which execution: unique in this process among observed ones. `None` if it is about none, as
    /// when a breaker is closed by hand.
    pub execution: Option<u64>,
    /// The number of the attempt that it is about, in the whole execution. For strategies around
    /// several attempts it is the first of those inside them.
    pub attempt: Option<u32>,
    /// What.
    pub kind: StrategyEventKind,
}

impl<'a> StrategyEvent<'a> {
    /// An event with all that there is to it.
    pub fn new(
        pipeline: &'a str,
        strategy: &'a str,
        operation: Option<&'a str>,
        execution: Option<u64>,
        attempt: Option<u32>,
        kind: StrategyEventKind,
    ) -> Self {
        Self { pipeline, strategy, operation, execution, attempt, kind }
    }
}

/// What a [`StrategyEvent`] says.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum StrategyEventKind {
    /// The work begins an attempt: told before its first poll. Work that a hedge does instead is not
    /// told of (T38).
    AttemptStarted,
    /// An attempt of the work ended. Every one that started ends exactly once.
    AttemptEnded {
        /// How.
        end: RunEnd,
        /// How long it ran.
        ran: Duration,
    },
    /// Another try follows after a wait.
    Retrying {
        /// Which: 1 is the first retry.
        retry: u32,
        /// The wait before it.
        delay: Duration,
    },
    /// No further try, although the outcome was worth one.
    GaveUp {
        /// Why.
        reason: &'static str,
    },
    /// A limit passed: what ran inside was dropped.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// How long it really was.
        elapsed: Duration,
    },
    /// Refused before it started.
    Rejected {
        /// Why: a word of the strategy's.
        reason: &'static str,
        /// When it may be worth another try, if anybody can say.
        retry_after: Option<Duration>,
    },
    /// A circuit breaker changed its state.
    Breaker {
        /// The state it is in now.
        state: &'static str,
        /// For how long it stays open, if it opened for a time.
        open_for: Option<Duration>,
    },
    /// The outcome was replaced.
    FellBack {
        /// Whether the replacement is a value.
        succeeded: bool,
    },
    /// A cache was asked.
    Cache {
        /// What came of it: `hit`, `miss`, `stale`.
        result: &'static str,
    },
    /// Trouble was made on purpose.
    Chaos {
        /// Which: `latency`, `fault`, `outcome`, `behaviour`.
        kind: &'static str,
    },
    /// The execution is over. Told exactly once for each.
    Over {
        /// How.
        end: RunEnd,
        /// How long it took.
        took: Duration,
    },
}

/// How an attempt of the work, or a whole execution, ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunEnd {
    /// With a value.
    Succeeded,
    /// With an error of the work.
    Failed,
    /// A timeout of the pipeline passed.
    TimedOut,
    /// A strategy refused it.
    Rejected,
    /// It was dropped, or its caller cancelled.
    Cancelled,
    /// It panicked.
    Panicked,
}

impl RunEnd {
    /// Every way to end.
    pub const ALL: [Self; 6] = [
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Rejected,
        Self::Cancelled,
        Self::Panicked,
    ];

    /// The word used in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed-out",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Panicked => "panicked",
        }
    }
}
