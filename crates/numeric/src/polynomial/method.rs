//! The methods of filling a slice with the values of a polynomial. Each is written once, for all kinds of registers.

use crate::simd::Register;

/// Number of steps after which a recurrence restarts from the polynomial itself. A recurrence computes each value from
/// earlier values, so rounding errors accumulate.
const STEPS: usize = 256;

/// Returns the value of the polynomial at `x`, by Horner's rule.
#[inline(always)]
unsafe fn horner<V: Register>(coefficients: &[V], x: V) -> V {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let Some((&highest, lower)) = coefficients.split_last() else { return V::splat(0.0) };
        let mut value = highest;
        for &coefficient in lower.iter().rev() {
            value = value.mul_add(x, coefficient);
        }
        value
    }
}

/// Returns the coefficients in registers. The functions of this file use loops because closures passed to the standard
/// library are compiled without the enabled instructions.
#[inline(always)]
unsafe fn splat<V: Register, const N: usize>(coefficients: &[f64; N]) -> [V; N] {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let mut registers = [V::splat(0.0); N];
        for (register, &coefficient) in registers.iter_mut().zip(coefficients) {
            *register = V::splat(coefficient);
        }
        registers
    }
}

/// Returns the polynomial's value at each `x`, by Horner's rule. Each coefficient is applied to all `C` values before
/// the next coefficient, so that no calculation waits for another.
#[inline(always)]
unsafe fn horner_side_by_side<V: Register, const C: usize>(coefficients: &[f64], x: &[V; C]) -> [V; C] {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let Some((&highest, lower)) = coefficients.split_last() else { return [V::splat(0.0); C] };
        let mut values = [V::splat(highest); C];
        for &coefficient in lower.iter().rev() {
            let coefficient = V::splat(coefficient);
            for (value, &x) in values.iter_mut().zip(x) {
                *value = value.mul_add(x, coefficient);
            }
        }
        values
    }
}

/// Computes the same bits as [`direct`], but for any number of coefficients. The coefficients are read from memory
/// again for each row of `C` registers.
///
/// # Safety
/// The CPU must have the register's instructions.
#[inline(always)]
pub unsafe fn direct_of_any_degree<V: Register, const C: usize>(coefficients: &[f64], out: &mut [f64]) {
    let first = unaligned::<V>(out);
    let (head, body) = out.split_at_mut(first);
    // SAFETY: the caller guarantees the instructions; every store is within a row of `out` or a piece of one.
    unsafe {
        if !head.is_empty() {
            let [values] = horner_side_by_side(coefficients, &[V::counting()]);
            store_all(values, head);
        }
        let step = V::splat((C * V::LANES) as f64);
        let mut x = positions::<V, C>(first);
        let mut rows = body.chunks_exact_mut(C * V::LANES);
        for row in &mut rows {
            let values = horner_side_by_side(coefficients, &x);
            for (chain, (value, x)) in values.into_iter().zip(&mut x).enumerate() {
                value.store(row.as_mut_ptr().add(chain * V::LANES));
                *x = x.add(step);
            }
        }
        let rest = rows.into_remainder();
        if !rest.is_empty() {
            let values = horner_side_by_side(coefficients, &x);
            for (piece, values) in rest.chunks_mut(V::LANES).zip(values) {
                store_all(values, piece);
            }
        }
    }
}

/// Computes every value by Horner's rule. Keeps all coefficients in registers, and works on `C` registers of values in
/// turn.
///
/// # Safety
/// The CPU must have the register's instructions.
#[inline(always)]
pub unsafe fn direct<V: Register, const N: usize, const C: usize>(coefficients: &[f64; N], out: &mut [f64]) {
    // SAFETY: the caller guarantees the instructions; every store is within a row of `out` or a piece of one.
    unsafe {
        let registers = splat::<V, N>(coefficients);
        let first = fill_unaligned(&registers, out);
        let step = V::splat((C * V::LANES) as f64);
        let mut x = positions::<V, C>(first);
        let mut rows = out[first..].chunks_exact_mut(C * V::LANES);
        for row in &mut rows {
            for (chain, x) in x.iter_mut().enumerate() {
                horner(&registers, *x).store(row.as_mut_ptr().add(chain * V::LANES));
                *x = x.add(step);
            }
        }
        for (piece, x) in rows.into_remainder().chunks_mut(V::LANES).zip(x) {
            store_all(horner(&registers, x), piece);
        }
    }
}

/// Computes every value from an earlier one with additions alone. The recurrences run side by side, one per lane of `C`
/// registers, which is enough to hide the latency of an addition. They restart by Horner's rule after [`STEPS`] steps,
/// which bounds the rounding error.
///
/// # Safety
/// The CPU must have the register's instructions.
#[inline(always)]
pub unsafe fn recurrences<V: Register, const N: usize, const C: usize>(coefficients: &[f64; N], out: &mut [f64]) {
    let stride = C * V::LANES;
    let differences = differences(coefficients, stride as f64);
    // SAFETY: the caller guarantees the instructions; every store is within a row of `out` or a piece of one.
    unsafe {
        let registers = splat::<V, N>(coefficients);
        let first = fill_unaligned(&registers, out);
        // The difference of the highest order is the same at every position.
        let last = V::splat(differences[N - 1][0]);
        for (run, block) in out[first..].chunks_mut(STEPS * stride).enumerate() {
            // For each of `C` registers, the value and the differences of its recurrences.
            let mut chains = [[last; N]; C];
            for (state, x) in chains.iter_mut().zip(positions::<V, C>(first + run * STEPS * stride)) {
                for k in 0..N - 1 {
                    state[k] = horner(&splat(&differences[k])[..N - k], x);
                }
            }
            let mut rows = block.chunks_exact_mut(stride);
            for row in &mut rows {
                for (chain, state) in chains.iter_mut().enumerate() {
                    state[0].store(row.as_mut_ptr().add(chain * V::LANES));
                    for k in 0..N - 1 {
                        let rise = if k + 2 == N { last } else { state[k + 1] };
                        state[k] = state[k].add(rise);
                    }
                }
            }
            for (piece, state) in rows.into_remainder().chunks_mut(V::LANES).zip(chains) {
                store_all(state[0], piece);
            }
        }
    }
}

/// Returns `C` registers whose lanes contain `first`, `first + 1`, and so on.
#[inline(always)]
unsafe fn positions<V: Register, const C: usize>(first: usize) -> [V; C] {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let begin = V::counting().add(V::splat(first as f64));
        let mut positions = [begin; C];
        for (chain, position) in positions.iter_mut().enumerate() {
            *position = begin.add(V::splat((chain * V::LANES) as f64));
        }
        positions
    }
}

/// Fills the elements before the first aligned one. Returns the number of these elements.
#[inline(always)]
unsafe fn fill_unaligned<V: Register>(registers: &[V], out: &mut [f64]) -> usize {
    let first = unaligned::<V>(out);
    if first > 0 {
        // SAFETY: the caller guarantees the same conditions; `out` has at least `first` elements.
        unsafe { store_all(horner(registers, V::counting()), &mut out[..first]) }
    }
    first
}

/// Returns the number of elements before the first aligned one. From that element on, no store of a register crosses a
/// cache line.
#[inline(always)]
fn unaligned<V: Register>(out: &[f64]) -> usize {
    (out.as_ptr().align_offset(size_of::<V>()) % V::LANES).min(out.len())
}

/// Stores the first lanes of `values` in a slice that has at most as many elements as the register has lanes.
#[inline(always)]
unsafe fn store_all<V: Register>(values: V, out: &mut [f64]) {
    // SAFETY: the caller guarantees the instructions; no more lanes are stored than the slice has elements.
    unsafe {
        match out.len() < V::LANES {
            true => values.store_partial(out.as_mut_ptr(), out.len()),
            false => values.store(out.as_mut_ptr()),
        }
    }
}

/// Returns the coefficients of the polynomial (row 0) and of its repeated differences over a distance of `stride` (rows
/// 1 and on). Row k has N − k coefficients. They are computed from coefficients, not from values, so no digits cancel.
#[inline(always)]
fn differences<const N: usize>(coefficients: &[f64; N], stride: f64) -> [[f64; N]; N] {
    let mut rows = [[0.0; N]; N];
    rows[0] = *coefficients;
    for k in 1..N {
        // (x + s)^m − x^m = Σ over j < m of C(m, j)·s^(m − j)·x^j
        for m in 1..N {
            let (mut binomial, mut power) = (1.0, (1..m).fold(stride, |power, _| power * stride));
            for j in 0..m {
                let term = rows[k - 1][m] * (binomial * power);
                // The first term of each sum replaces the zero, because adding it to the zero would take as long as any
                // other addition.
                rows[k][j] = if m == j + 1 { term } else { rows[k][j] + term };
                binomial *= (m - j) as f64 / (j + 1) as f64;
                power /= stride;
            }
        }
    }
    rows
}

/// Computes each value from the previous one by additions alone, as a compiler's strength reduction does. Each value
/// waits for the previous value.
pub fn additions<const N: usize>(coefficients: &[f64; N], out: &mut [f64]) {
    let rows = differences(coefficients, 1.0);
    // At zero each difference equals its constant coefficient.
    let mut state: [f64; N] = core::array::from_fn(|k| rows[k][0]);
    for value in out {
        *value = state[0];
        for k in 1..N {
            state[k - 1] += state[k];
        }
    }
}

/// Fills the slice with one number, to measure the speed limit: no method can be faster than these stores.
///
/// # Safety
/// The CPU must have the register's instructions.
#[inline(always)]
pub unsafe fn store<V: Register, const C: usize>(value: f64, out: &mut [f64]) {
    // SAFETY: the caller guarantees the instructions; every store is within a row of `out` or a piece of one.
    unsafe {
        let value = V::splat(value);
        let first = fill_unaligned(&[value], out);
        let mut rows = out[first..].chunks_exact_mut(C * V::LANES);
        for row in &mut rows {
            for chain in 0..C {
                value.store(row.as_mut_ptr().add(chain * V::LANES));
            }
        }
        for piece in rows.into_remainder().chunks_mut(V::LANES) {
            store_all(value, piece);
        }
    }
}
