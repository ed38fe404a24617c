//! What few calls need.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::Gate;
use tokio_util::sync::CancellationToken;

use crate::attempt::AttemptCounter;
use crate::properties::Properties;

/// What few calls need: kept behind one pointer, and none at all for the others.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent answers of the caller")]
pub(crate) struct Extras {
    pub(crate) token: Option<CancellationToken>,
    pub(crate) properties: Option<Properties>,
    pub(crate) counter: Option<AttemptCounter>,
    /// The primary's number, if it has one already.
    pub(crate) first: Option<u32>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) operation: Option<Arc<str>>,
    pub(crate) idempotent: bool,
    pub(crate) tracked: bool,
    pub(crate) settle: bool,
    pub(crate) spawned: bool,
    /// Asked before each attempt, where attempts need room of their own.
    pub(crate) room: Option<Arc<dyn Room>>,
}

/// Has room for attempts, or has not.
pub(crate) trait Room: fmt::Debug + Send + Sync {
    /// Makes room for this attempt, which is the next to start; 0 is the primary. A primary that
    /// is refused starts all the same.
    fn admit(&self, hedge: u8) -> Result<(), Gate>;
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            token: None,
            properties: None,
            counter: None,
            first: None,
            deadline: None,
            operation: None,
            idempotent: true,
            tracked: false,
            settle: false,
            spawned: false,
            room: None,
        }
    }
}
