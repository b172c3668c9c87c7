//! The variant `blocks`. It sends a file in parts of equal size (blocks), and keeps a fixed number of them in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ascertain_engine::experiment::TargetError;
use ascertain_experiments_networks::links::failed;
use ascertain_transfer::{Attempt, PutOptions, Store, Upload};
use tokio::task::JoinSet;

use super::source::Source;

/// Stores the file in blocks, and returns their number. `shape` is the size of a block in bytes and the number of
/// blocks in flight. Aborts the upload after an error, or if `interrupted` completes first.
pub async fn put(
    store: &Arc<dyn Store>,
    name: &str,
    source: &Arc<Source>,
    shape: (u64, usize),
    interrupted: impl Future<Output = ()>,
) -> Result<u64, TargetError> {
    let options = PutOptions::default();
    let attempt = &mut Attempt::default();
    let upload = store.start_upload(name, &options, attempt).await.map_err(failed)?;
    let storing = async {
        let tokens = send(store, &upload, source, shape).await?;
        store.commit(&upload, &tokens, source.crc64, &options, &mut Attempt::default()).await.map_err(failed)?;
        Ok(tokens.len() as u64)
    };
    let stored = tokio::select! {
        stored = storing => stored,
        () = interrupted => Err(TargetError::Interrupted),
    };
    if stored.is_err() {
        let _ = store.abort(&upload, attempt).await;
    }
    stored
}

/// Sends all blocks. Returns the store's token for each block, in the order of the blocks.
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
                let token = store.put_part(&upload, index, block, &mut Attempt::default()).await.map_err(failed)?;
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
