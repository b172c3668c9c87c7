//! Uses a folder as a cache for the objects of an HTTP server: `cargo run -p ascertain-transfer --example cached -- URL
//! FOLDER`. Without arguments, the example starts its own server, and removes its folder at the end.
#![allow(clippy::print_stdout)]

use std::net::TcpListener;

use ascertain_netlab::http::Server;
use ascertain_transfer::race::{Policy, RaceResult, Racer, checked};
use ascertain_transfer::{Attempt, Failure, Kind, Local, Options, PutOptions, Store, open};

const TIMES: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = Server::start(TcpListener::bind("127.0.0.1:0")?, None)?;
    let temporary = tempfile::tempdir()?;
    let url = arguments.next().unwrap_or_else(|| format!("http://{}/bytes/100000", server.address()));
    let folder = arguments.next().map_or_else(|| temporary.path().to_path_buf(), Into::into);
    let (origin, cache) = (open(&url, &Options::default())?, Local::new(folder));

    // In addition to the cached file, the program keeps the size and the checksum of the object.
    let seen = &mut Attempt::default();
    let meta = origin.store.head(&origin.name, seen).await?.ok_or("the server has no such object")?;
    let block = origin.store.get(&meta, 0..meta.bytes, seen).await?;
    let sum = block.crc64;
    cache.put("object", block, &PutOptions::default(), seen).await?;

    // All requests use one racer. About 19 of 20 requests only read the disk; at most one of 20 goes to disk and
    // server.
    let racer = Racer::new(Policy::Percentile { quantile: 0.95, budget: 0.05 })?;
    for _ in 0..TIMES {
        let from_cache = async {
            let seen = &mut Attempt::default();
            let missing = || Failure::new(Kind::Missing, "it is not in the cache");
            let kept = cache.head("object", seen).await?.ok_or_else(missing)?;
            cache.get(&kept, 0..kept.bytes, seen).await
        };
        let from_origin = async { origin.store.get(&meta, 0..meta.bytes, &mut Attempt::default()).await };
        // Another program may have changed the cached file. If the checksum differs, the object is fetched from the
        // server.
        let RaceResult { value, side, .. } =
            racer.race(checked(from_cache, sum, |block| block.crc64), from_origin).await?;
        assert_eq!(value.bytes.len() as u64, meta.bytes, "by the {side:?}");
    }
    println!("{:#?}", racer.counts());
    println!("a request would race after {:?}", racer.delay());
    Ok(())
}
