//! Buffers that end where readable memory ends. An access beyond the buffer kills the test with a signal.

use ascertain_numeric::cbrt::cbrt_each;
use ascertain_numeric::decimal::{Integer, VARIANTS, append_column, write, write_within};
use ascertain_numeric::polynomial;
use ascertain_numeric::sum::{Element, dot, mean, variance};

/// Two pages of memory. The second page can't be accessed.
struct GuardedBuffer {
    start: *mut u8,
    page_bytes: usize,
}

impl GuardedBuffer {
    fn new() -> GuardedBuffer {
        let (both, none) = (libc::PROT_READ | libc::PROT_WRITE, libc::PROT_NONE);
        // SAFETY: the code creates a new mapping, and then makes its second page inaccessible.
        unsafe {
            // A page has 4, 16 or 64 KB on aarch64.
            let page_bytes = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(std::ptr::null_mut(), 2 * page_bytes, both, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.add(page_bytes), page_bytes, none), 0);
            GuardedBuffer { start: start.cast(), page_bytes }
        }
    }

    /// Returns the last `count` elements before the inaccessible page.
    fn last<T: Copy>(&mut self, count: usize) -> &mut [T] {
        assert!(count * size_of::<T>() <= self.page_bytes);
        // SAFETY: the elements are within the first page. They are aligned because they end where the page does, and
        // any bits are valid.
        unsafe {
            let start = self.start.add(self.page_bytes - count * size_of::<T>());
            std::slice::from_raw_parts_mut(start.cast(), count)
        }
    }
}

impl Drop for GuardedBuffer {
    fn drop(&mut self) {
        // SAFETY: this object owns the mapping, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.cast(), 2 * self.page_bytes) };
    }
}

fn check<I: Integer + ToString>(guarded: &mut GuardedBuffer, value: I) {
    let expected = value.to_string();
    let buffer = guarded.last::<u8>(I::MOST_BYTES);
    let length = write(value, buffer).unwrap();
    assert_eq!(&buffer[..length], expected.as_bytes());
    let buffer = guarded.last::<u8>(expected.len());
    assert_eq!(write_within(value, buffer), Ok(expected.len()));
    assert_eq!(buffer, expected.as_bytes());
}

#[test]
fn text_stays_within_its_bound() {
    let mut guarded = GuardedBuffer::new();
    let mut x = 0_u64;
    loop {
        check(&mut guarded, x);
        check(&mut guarded, x as u32);
        check(&mut guarded, x as i64);
        check(&mut guarded, x as i32);
        check(&mut guarded, (x as i64).wrapping_neg());
        check(&mut guarded, (x as i32).wrapping_neg());
        for variant in VARIANTS {
            let buffer: &mut [u8; 20] = guarded.last::<u8>(20).try_into().unwrap();
            variant.each(&[x], buffer);
        }
        match x.checked_mul(10) {
            Some(more) => x = more + 7,
            None => break,
        }
    }
}

fn products_and_moments<T: Element>(one: &mut GuardedBuffer, other: &mut GuardedBuffer, count: usize, [x, y]: [T; 2]) {
    let (xs, ys) = (one.last::<T>(count), other.last::<T>(count));
    xs.fill(x);
    ys.fill(y);
    let named = T::DOT_VARIANTS.iter().filter(|variant| variant.is_product).filter_map(|variant| variant.function());
    for dot in named.chain([dot as fn(&[T], &[T]) -> f64]) {
        assert_eq!(dot(xs, ys), 2.0 * count as f64);
    }
    assert_eq!((mean(xs), variance(xs)), ((count > 0).then_some(1.0), (count > 1).then_some(0.0)));
}

#[test]
fn slices_are_read_and_filled_to_their_end_and_no_further() {
    let (mut guarded, mut other) = (GuardedBuffer::new(), GuardedBuffer::new());
    for count in 0..70 {
        for variant in f32::VARIANTS {
            let numbers = guarded.last::<f32>(count);
            numbers.fill(1.0);
            variant.accumulators.iter().filter_map(|&n| variant.function(n)).for_each(|sum| {
                std::hint::black_box(sum(numbers));
            });
        }
        for variant in f64::VARIANTS {
            let numbers = guarded.last::<f64>(count);
            numbers.fill(1.0);
            variant.accumulators.iter().filter_map(|&n| variant.function(n)).for_each(|sum| {
                std::hint::black_box(sum(numbers));
            });
        }
        for variant in polynomial::VARIANTS {
            if let Some(fill) = variant.function() {
                fill(&[3.0, 2.0, 1.0], guarded.last::<f64>(count));
            }
        }
        products_and_moments::<f32>(&mut guarded, &mut other, count, [1.0, 2.0]);
        products_and_moments::<f64>(&mut guarded, &mut other, count, [1.0, 2.0]);
        let numbers = other.last::<u64>(count);
        numbers.fill(27);
        let mut text = Vec::new();
        append_column(numbers, b'\n', &mut text);
        assert_eq!(text, b"27\n".repeat(count));
        let roots = guarded.last::<u32>(count);
        cbrt_each(numbers, roots);
        assert!(roots.iter().all(|&root| root == 3));
    }
}
