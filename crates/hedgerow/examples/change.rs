//! A policy that an operator turns off and on while calls are made through it.
//!
//! `cargo run -p hedgerow --example change`

use std::time::Duration;

use hedgerow::{Hedge, PolicyHandle};
use tokio::time::{Instant, sleep};

/// The first attempt of every call is stuck.
async fn load(attempt: u32) -> Result<u32, ()> {
    sleep(Duration::from_millis(if attempt == 0 { 300 } else { 20 })).await;
    Ok(attempt)
}

async fn show(policy: &PolicyHandle, when: &str) {
    let start = Instant::now();
    let answer = policy.get().call(|attempt| load(attempt.number())).await;
    println!("{when:<10} answered by attempt {answer:?} after {:?}", start.elapsed());
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let on = || Hedge::after(Duration::from_millis(50)).max_extra_load(1.0);
    let policy = PolicyHandle::new(on());
    policy.get().policy().completed(); // the budget starts empty; one call has paid for a hedge
    show(&policy, "on").await;
    policy.set(on().max_hedges(0));
    show(&policy, "off").await;
    policy.set(on());
    show(&policy, "on again").await;
}
