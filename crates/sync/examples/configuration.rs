//! An example with settings that one thread sometimes replaces and that other threads read all the time. Reading needs
//! neither a lock nor a fence. Each reader reports the settings that it saw through a ring.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::thread;

use ascertain_sync::epoch::{self, Published, default_collector};
use ascertain_sync::ring::{Consumer, Producer, ring};

fn main() {
    let settings: Arc<Published<String>> = Arc::new(Published::new("server-0".into(), default_collector()));
    let (mut seen, mut log): (Producer<String>, Consumer<String>) = ring(64);

    let reader = thread::spawn({
        let settings = settings.clone();
        move || {
            let mut last = String::new();
            while last != "server-9" {
                let guard = epoch::pin();
                let now = settings.load(&guard);
                if *now != last {
                    last.clone_from(now);
                    // Sleeps while the ring is full. An error means that the ring's consumer is gone.
                    if seen.push(last.clone(), None).is_err() {
                        return;
                    }
                }
            }
        }
    });
    for version in 1..10 {
        thread::yield_now();
        settings.update(&epoch::pin(), |_| Some(format!("server-{version}")));
    }
    // The loop runs until the reader drops its end of the ring.
    while let Ok(name) = log.pop(None) {
        println!("the reader saw {name}");
    }
    reader.join().expect("the reader does not panic");
}
