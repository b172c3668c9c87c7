//! Checks that a client has transferred everything.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;

use ascertain_transfer::{Attempt, Environment, Options, open};

use crate::BUCKET;

type Result = std::result::Result<(), Box<dyn Error>>;

/// Compares the number and the bytes of the objects below `key` with the files of the source.
pub fn objects(server: SocketAddr, key: &str, expected: &[(String, u64)]) -> Result {
    let keys = [("AWS_ACCESS_KEY_ID", "minioadmin"), ("AWS_SECRET_ACCESS_KEY", "minioadmin")];
    let environment: Environment = keys.into_iter().collect();
    let options = Options { environment, endpoint_url: Some(format!("http://{server}")), ..Options::default() };
    let bucket = open(&format!("s3://{BUCKET}/"), &options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listed = runtime.block_on(bucket.store.list(&format!("{key}/"), &mut Attempt::default()))?;
    compare((listed.len(), listed.iter().map(|object| object.bytes).sum()), expected, "objects")
}

/// Compares the number and the bytes of the files below `folder` with the files of the source.
pub fn files(folder: &Path, expected: &[(String, u64)]) -> Result {
    compare(size_of(folder)?, expected, "files")
}

fn compare((count, bytes): (usize, u64), expected: &[(String, u64)], what: &str) -> Result {
    let expected = (expected.len(), expected.iter().map(|(_, bytes)| bytes).sum::<u64>());
    if (count, bytes) == expected {
        return Ok(());
    }
    Err(format!("the result has {count} {what} with {bytes} bytes instead of {} with {}", expected.0, expected.1)
        .into())
}

/// Returns the number of files below a folder, and the sum of their sizes.
fn size_of(folder: &Path) -> std::io::Result<(usize, u64)> {
    let (mut count, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        let more = if found.is_dir() { size_of(&entry.path())? } else { (1, found.len()) };
        (count, bytes) = (count + more.0, bytes + more.1);
    }
    Ok((count, bytes))
}

/// Compares the contents of all files.
pub fn contents(source: &Path, got: &Path, files: &[(String, u64)]) -> Result {
    let (mut ours, mut theirs) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for (name, bytes) in files {
        let (mut source, mut got) = (File::open(source.join(name))?, File::open(got.join(name))?);
        let mut left = *bytes as usize;
        while left > 0 {
            let step = left.min(ours.len());
            source.read_exact(&mut ours[..step])?;
            got.read_exact(&mut theirs[..step])?;
            if ours[..step] != theirs[..step] {
                return Err(format!("{name}: the transferred bytes differ from the source").into());
            }
            left -= step;
        }
    }
    Ok(())
}
