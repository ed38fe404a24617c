//! What few calls need.

use std::time::Duration;

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
    pub(crate) deadline: Option<Duration>,
    pub(crate) idempotent: bool,
    pub(crate) tracked: bool,
    pub(crate) settle: bool,
    pub(crate) spawned: bool,
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            token: None,
            properties: None,
            counter: None,
            deadline: None,
            idempotent: true,
            tracked: false,
            settle: false,
            spawned: false,
        }
    }
}
