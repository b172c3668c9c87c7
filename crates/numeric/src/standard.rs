//! Functions that `core` lacks: initialisation at first use, and rounded arithmetic. With the standard library, this
//! module uses the functions of `std`. Without it, the functions come from this file and from the crate `libm`, which
//! rounds in the same way.

#[cfg(not(feature = "std"))]
pub(crate) use libm::{cbrt, fma as mul_add, round};
#[cfg(feature = "std")]
pub(crate) use with_std::{Once, cbrt, mul_add, round};
#[cfg(not(feature = "std"))]
pub(crate) use without_std::Once;

#[cfg(feature = "std")]
mod with_std {
    use std::sync::OnceLock;

    /// A value that the first caller initialises.
    pub(crate) struct Once<T>(OnceLock<T>);

    impl<T: Copy> Once<T> {
        pub(crate) const fn new() -> Once<T> {
            Once(OnceLock::new())
        }

        #[inline]
        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> T {
            *self.0.get_or_init(make)
        }
    }

    #[inline(always)]
    pub(crate) fn mul_add(x: f64, factor: f64, term: f64) -> f64 {
        x.mul_add(factor, term)
    }

    #[inline(always)]
    pub(crate) fn cbrt(x: f64) -> f64 {
        x.cbrt()
    }

    #[inline(always)]
    pub(crate) fn round(x: f64) -> f64 {
        x.round()
    }
}

#[cfg(any(test, not(feature = "std")))]
#[cfg_attr(feature = "std", allow(dead_code))]
mod without_std {
    use alloc::boxed::Box;
    use core::ptr;
    use core::sync::atomic::{AtomicPtr, Ordering};

    /// A value that is initialised once. If several threads initialise it at the same time, all but one of their values
    /// are dropped. Use it only for statics, because the value is never freed.
    pub(crate) struct Once<T>(AtomicPtr<T>);

    impl<T: Copy> Once<T> {
        pub(crate) const fn new() -> Once<T> {
            Once(AtomicPtr::new(ptr::null_mut()))
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> T {
            let mut made = self.0.load(Ordering::Acquire);
            if made.is_null() {
                let mine = Box::into_raw(Box::new(make()));
                made = match self.0.compare_exchange(ptr::null_mut(), mine, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => mine,
                    Err(theirs) => {
                        // SAFETY: `mine` is a box that no other code has seen.
                        drop(unsafe { Box::from_raw(mine) });
                        theirs
                    }
                };
            }
            // SAFETY: the pointer is that of a box. Its content was written before the pointer was stored here, and is
            // neither changed nor freed.
            unsafe { *made }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::Once;

        #[test]
        fn all_get_what_the_first_one_made() {
            static ONCE: Once<u32> = Once::new();
            let seen: Vec<u32> = std::thread::scope(|scope| {
                let each = [1, 2, 3, 4].map(|mine| scope.spawn(move || ONCE.get_or_init(|| mine)));
                each.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
            assert_eq!(ONCE.get_or_init(|| 5), seen[0]);
        }
    }
}
