//! A file in blocks of one size: so many under way at once, each sent when one before it is through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ascertain_engine::experiment::TargetError;
use ascertain_experiments_networks::links::failed;
use ascertain_transfer::{Attempt, PutOptions, Store, Upload};
use tokio::task::JoinSet;

use super::source::Source;

/// Puts it. What was begun is given up where that fails, or `interrupted` comes first. Says how many blocks there were.
pub async fn put(
    store: &Arc<dyn Store>,
    name: &str,
    source: &Arc<Source>,
    (block_bytes, connections): (u64, usize),
    interrupted: impl Future<Output = ()>,
) -> Result<u64, TargetError> {
    let options = PutOptions::default();
    let seen = &mut Attempt::default();
    let upload = store.begin(name, &options, seen).await.map_err(failed)?;
    let sent = tokio::select! {
        sent = send(store, &upload, source, (block_bytes, connections)) => sent,
        () = interrupted => Err(TargetError::Interrupted),
    };
    let made = match sent {
        Ok(blocks) => {
            let made = store.commit(&upload, &blocks, source.crc64, &options, seen).await;
            made.map(|_| blocks.len() as u64).map_err(failed)
        }
        Err(error) => Err(error),
    };
    if made.is_err() {
        let _ = store.abort(&upload, seen).await;
    }
    made
}

/// What the list has to say of each block.
async fn send(
    store: &Arc<dyn Store>,
    upload: &Upload,
    source: &Arc<Source>,
    (block_bytes, connections): (u64, usize),
) -> Result<Vec<String>, TargetError> {
    let count = source.bytes.div_ceil(block_bytes).max(1) as usize;
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..connections.min(count) {
        let (store, upload, source, next) = (store.clone(), upload.clone(), source.clone(), next.clone());
        workers.spawn(async move {
            let mut sent = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return Ok(sent);
                }
                let offset = index as u64 * block_bytes;
                let block = source.block(offset, block_bytes.min(source.bytes - offset)).map_err(failed)?;
                let token = store.put_block(&upload, index, block, &mut Attempt::default()).await.map_err(failed)?;
                sent.push((index, token));
            }
        });
    }
    let mut blocks = vec![String::new(); count];
    while let Some(sent) = workers.join_next().await {
        for (index, token) in sent.map_err(failed)?? {
            blocks[index] = token;
        }
    }
    Ok(blocks)
}
