//! Allocates the buffers and states of a plan.

use super::RunError;

/// Returns a buffer of exactly `length` copies of `value`.
pub(crate) fn filled<T: Clone>(length: usize, value: T) -> Result<Box<[T]>, RunError> {
    let mut buffer = Vec::new();
    let failed = |_| RunError::NoMemory { bytes: (length as u64).saturating_mul(size_of::<T>() as u64) };
    buffer.try_reserve_exact(length).map_err(failed)?;
    buffer.resize(length, value);
    Ok(buffer.into_boxed_slice())
}
