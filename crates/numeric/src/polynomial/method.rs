//! The ways to fill a slice with a polynomial's values, each written once for every register.

use std::hint::black_box;

use super::register::Register;

/// Registers that are in work at once: enough to hide the latency of an addition (4 cycles) behind one
/// store a cycle.
const CHAINS: usize = 4;

/// Steps of a recurrence before it starts anew from the polynomial itself.
const STEPS: usize = 256;

/// The value at `x`, by Horner's rule.
#[inline(always)]
unsafe fn horner<V: Register>(coefficients: &[V], x: V) -> V {
    // SAFETY: the same contract.
    unsafe {
        let Some((&highest, lower)) = coefficients.split_last() else { return V::splat(0.0) };
        let mut value = highest;
        for &coefficient in lower.iter().rev() {
            value = value.mul_add(x, coefficient);
        }
        value
    }
}

/// Coefficients in registers. Loops, here and below, where a closure would do: the closures of the standard
/// library's functions are compiled without the instructions.
#[inline(always)]
unsafe fn splat<V: Register, const N: usize>(coefficients: &[f64; N]) -> [V; N] {
    // SAFETY: the same contract.
    unsafe {
        let mut registers = [V::splat(0.0); N];
        for (register, &coefficient) in registers.iter_mut().zip(coefficients) {
            *register = V::splat(coefficient);
        }
        registers
    }
}

/// Every value by Horner's rule, one at a time.
pub fn one_by_one(coefficients: &[f64], out: &mut [f64]) {
    for (i, value) in out.iter_mut().enumerate() {
        // SAFETY: `f64` needs no special instructions.
        *value = unsafe { horner(coefficients, i as f64) };
    }
}

/// Every value by Horner's rule.
///
/// # Safety
/// The CPU has the register's instructions.
#[inline(always)]
pub unsafe fn direct<V: Register, const N: usize>(coefficients: &[f64; N], out: &mut [f64]) {
    // SAFETY: the caller vouches for the instructions; every store is within a row of `out`.
    unsafe {
        let registers = splat::<V, N>(coefficients);
        let Some(first) = begin(&registers, coefficients, out) else { return };
        let step = V::splat((CHAINS * V::LANES) as f64);
        let mut x = positions::<V>(first);
        for row in out[first..].chunks_exact_mut(CHAINS * V::LANES) {
            for (chain, x) in x.iter_mut().enumerate() {
                horner(&registers, *x).store(row.as_mut_ptr().add(chain * V::LANES));
                *x = x.add(step);
            }
        }
        end(&registers, first, out);
    }
}

/// Every value from the one so many places before it, by additions alone: as many recurrences side by side as
/// there are lanes in [`CHAINS`] registers, begun anew by Horner's rule after [`STEPS`] steps, which bounds
/// what the additions round off.
///
/// # Safety
/// The CPU has the register's instructions.
#[inline(always)]
pub unsafe fn recurrences<V: Register, const N: usize>(coefficients: &[f64; N], out: &mut [f64]) {
    let stride = CHAINS * V::LANES;
    let differences = differences(coefficients, stride as f64);
    // SAFETY: the caller vouches for the instructions; every store is within a row of `out`.
    unsafe {
        let registers = splat::<V, N>(coefficients);
        let Some(first) = begin(&registers, coefficients, out) else { return };
        // A one that the compiler can't see, or it would make additions of the multiplications again.
        let one = V::splat(black_box(1.0));
        // The last difference is the same everywhere.
        let last = V::splat(differences[N - 1][0]);
        for (run, block) in out[first..].chunks_mut(STEPS * stride).enumerate() {
            // For each chain its value and its differences.
            let mut chains = [[last; N]; CHAINS];
            for (state, x) in chains.iter_mut().zip(positions::<V>(first + run * STEPS * stride)) {
                for k in 0..N - 1 {
                    state[k] = horner(&splat(&differences[k])[..N - k], x);
                }
            }
            for row in block.chunks_exact_mut(stride) {
                for (chain, state) in chains.iter_mut().enumerate() {
                    state[0].store(row.as_mut_ptr().add(chain * V::LANES));
                    for k in 0..N - 1 {
                        let rise = if k + 2 == N { last } else { state[k + 1] };
                        // Every other addition goes to the multipliers, which are idle.
                        state[k] = if k % 2 == 0 { rise.mul_add(one, state[k]) } else { state[k].add(rise) };
                    }
                }
            }
        }
        end(&registers, first, out);
    }
}

/// Where each chain of a row begins.
#[inline(always)]
unsafe fn positions<V: Register>(first: usize) -> [V; CHAINS] {
    // SAFETY: the same contract.
    unsafe {
        let mut positions = [V::counting(); CHAINS];
        for (chain, position) in positions.iter_mut().enumerate() {
            *position = position.add(V::splat((first + chain * V::LANES) as f64));
        }
        positions
    }
}

/// Fills the first register's worth, and says where rows can begin whose stores cross no cache line; rows write
/// some of these values again. Fills all, and says nothing, where a register does not fit.
#[inline(always)]
unsafe fn begin<V: Register>(registers: &[V], coefficients: &[f64], out: &mut [f64]) -> Option<usize> {
    if out.len() < V::LANES {
        one_by_one(coefficients, out);
        return None;
    }
    // SAFETY: a register fits.
    unsafe { place(registers, 0, out) };
    Some(out.as_ptr().align_offset(size_of::<V>()).min(V::LANES))
}

/// Fills what the rows that began at `first` have left over, the last register's worth where it ends.
#[inline(always)]
unsafe fn end<V: Register>(registers: &[V], first: usize, out: &mut [f64]) {
    let mut done = out.len() - (out.len() - first) % (CHAINS * V::LANES);
    while done < out.len() {
        // SAFETY: `begin` has seen that a register fits.
        unsafe { place(registers, done.min(out.len() - V::LANES), out) };
        done += V::LANES;
    }
}

/// Fills one register's worth of values from `at`, which must fit.
#[inline(always)]
unsafe fn place<V: Register>(registers: &[V], at: usize, out: &mut [f64]) {
    // SAFETY: the caller vouches for the instructions and for the room.
    unsafe { horner(registers, V::counting().add(V::splat(at as f64))).store(out.as_mut_ptr().add(at)) }
}

/// The polynomial, the difference between it a `stride` on and itself, the difference of that, and so on. Row
/// k has N − k coefficients. Differences of coefficients, not of values: nothing cancels.
fn differences<const N: usize>(coefficients: &[f64; N], stride: f64) -> [[f64; N]; N] {
    let mut rows = [[0.0; N]; N];
    rows[0] = *coefficients;
    for k in 1..N {
        // (x + s)^m − x^m = Σ over j < m of C(m, j)·s^(m − j)·x^j
        for m in 1..N {
            let (mut binomial, mut power) = (1.0, stride.powi(m as i32));
            for j in 0..m {
                rows[k][j] += rows[k - 1][m] * binomial * power;
                binomial *= (m - j) as f64 / (j + 1) as f64;
                power /= stride;
            }
        }
    }
    rows
}

/// The loop with additions alone that strength reduction makes of the one with multiplications: each value
/// waits for the one before it.
pub fn additions<const N: usize>(coefficients: &[f64; N], out: &mut [f64]) {
    let rows = differences(coefficients, 1.0);
    // At zero every difference is its constant coefficient.
    let mut state: [f64; N] = std::array::from_fn(|k| rows[k][0]);
    for value in out {
        *value = state[0];
        for k in 1..N {
            state[k - 1] += state[k];
        }
    }
}

/// The limit: one number stored everywhere.
///
/// # Safety
/// The CPU has the register's instructions.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub unsafe fn store<V: Register, const N: usize>(coefficients: &[f64; N], out: &mut [f64]) {
    // SAFETY: the caller vouches for the instructions; every store is within a row of `out`.
    unsafe {
        let registers = [V::splat(coefficients[0])];
        let Some(first) = begin(&registers, &coefficients[..1], out) else { return };
        for row in out[first..].chunks_exact_mut(CHAINS * V::LANES) {
            for chain in 0..CHAINS {
                registers[0].store(row.as_mut_ptr().add(chain * V::LANES));
            }
        }
        end(&registers, first, out);
    }
}
