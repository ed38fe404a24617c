//! What a cache drops may use the cache.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hedgerow::ManualClock;
use hedgerow::pipeline::{Cache, CacheControl, Context, Pipeline};

use crate::support::ms;

/// The shards of the cache hold 32 or more: none of these is evicted, wherever it is kept.
const KEYS: u32 = 20;

type Control = CacheControl<Nosy, u32>;

/// A value that looks into the cache, and empties it, when it is dropped.
#[derive(Clone)]
struct Nosy(#[expect(dead_code, reason = "for its drop")] Arc<Looks>);

#[derive(Clone, Default)]
struct Cached {
    control: Arc<OnceLock<Control>>,
    armed: Arc<AtomicBool>,
    dropped: Arc<AtomicU32>,
}

struct Looks(Cached);

impl Drop for Looks {
    fn drop(&mut self) {
        let Cached { control, armed, dropped } = &self.0;
        if !armed.load(Ordering::SeqCst) {
            return;
        }
        dropped.fetch_add(1, Ordering::SeqCst);
        if let Some(control) = control.get() {
            assert!(control.entries() <= 64);
            (0..KEYS).for_each(|key| control.invalidate_key(&key));
            control.invalidate();
        }
    }
}

/// A cache of them all; how many values are dropped when this is done to it, with its `ask` for a key.
fn dropped_by(does: impl FnOnce(&Control, &dyn Fn(u32))) -> u32 {
    let (cached, asked) = (Cached::default(), Arc::new(AtomicU32::new(0)));
    let (clock, key) = (ManualClock::new(), Arc::clone(&asked));
    let cache = Cache::keyed(64, move |_: &Context| Some(key.load(Ordering::SeqCst)));
    let control = cache.control();
    assert!(cached.control.set(control.clone()).is_ok());
    let builder = Pipeline::builder().clock(Arc::new(clock.clone()));
    let pipeline = builder.cache(cache.ttl(ms(1))).build().unwrap();
    let ask = |key| {
        clock.advance(Duration::from_secs(1)); // what is there is past its time
        asked.store(key, Ordering::SeqCst);
        let work = |_| async { Ok::<_, String>(Nosy(Arc::new(Looks(cached.clone())))) };
        assert!(futures_executor::block_on(pipeline.execute(work).into_future()).is_ok());
    };
    (0..KEYS).for_each(ask);
    assert_eq!(control.entries(), KEYS as usize);
    cached.armed.store(true, Ordering::SeqCst);
    does(&control, &ask);
    cached.dropped.load(Ordering::SeqCst)
}

#[test]
fn values_that_are_dropped_may_use_the_cache() {
    let emptied = dropped_by(|control, _| {
        control.invalidate();
        assert_eq!(control.entries(), 0);
    });
    assert_eq!(emptied, KEYS);
    assert_eq!(dropped_by(|control, _| control.invalidate_key(&3)), KEYS, "by the first of them");
    assert_eq!(dropped_by(|_, ask| ask(3)), KEYS + 1, "the new one is not kept either");
    let evicted = dropped_by(|_, ask| (KEYS..KEYS + 100).for_each(ask));
    assert!(evicted >= KEYS, "{evicted}");
}
