//! Coefficients of the cube roots, calculated when the crate is compiled.
//!
//! A number is shifted left by a multiple of three, so that its leading byte is 32 to 255; there is an
//! entry for each such byte. Within its interval the root is nearly a parabola, or, in fewer bits, a line.

/// Entries below this are never used.
const FIRST_BYTE: usize = 32;

/// Bits behind the point of [`Parabola`]'s numbers.
pub const PARABOLA_BITS: u32 = 21;

/// Bits behind the point of [`Line`]'s numbers.
pub const LINE_BITS: u32 = 20;

/// `constant + linear·f − quadratic·f²` at the fraction f of an interval of 64-bit numbers.
#[derive(Clone, Copy)]
pub struct Parabola {
    pub constant: u64,
    pub linear: u64,
    pub quadratic: u64,
}

/// `constant + linear·f` at the fraction f of an interval of 32-bit numbers.
#[derive(Clone, Copy)]
pub struct Line {
    pub constant: u32,
    pub linear: u32,
}

/// Above the root everywhere, by less than a quarter.
pub static PARABOLAS: [Parabola; 256] = {
    let mut table = [Parabola { constant: 0, linear: 0, quadratic: 0 }; 256];
    let mut byte = FIRST_BYTE;
    while byte < 256 {
        table[byte] = parabola(byte as u128);
        byte += 1;
    }
    table
};

/// Above the root everywhere, by less than a tenth.
pub static LINES: [Line; 256] = {
    let mut table = [Line { constant: 0, linear: 0 }; 256];
    let mut byte = FIRST_BYTE;
    while byte < 256 {
        table[byte] = line(byte as u128);
        byte += 1;
    }
    table
};

/// Goes through the root at 1/16, 8/16 and 15/16 of the interval, near the Chebyshev points; it is off by at
/// most 0.078 and then raised by an eighth, so that it never lies below.
const fn parabola(byte: u128) -> Parabola {
    let y = [root64(16 * byte + 1), root64(16 * byte + 8), root64(16 * byte + 15)];
    // Newton's form: y = y0 + first·u − second·u·(u−1)/2 where u = (16·f − 1)/7 counts steps from 1/16,
    // and so u·(u−1) = (256·f² − 144·f + 8)/49.
    let first = y[1] - y[0];
    let second = first - (y[2] - y[1]);
    let raise = 1 << (PARABOLA_BITS - 3);
    Parabola {
        constant: (y[0] - first / 7 - second * 8 / 98 + raise) as u64,
        linear: (first * 16 / 7 + second * 144 / 98) as u64,
        quadratic: (second * 256 / 98) as u64,
    }
}

/// The root of sixteenths·2^52, in units of 2^−[`PARABOLA_BITS`].
const fn root64(sixteenths: u128) -> u128 {
    cube_root(sixteenths << (52 + 3 * PARABOLA_BITS))
}

/// The chord of the interval, at most 0.023 below the root, raised by a sixteenth.
const fn line(byte: u128) -> Line {
    let (low, high) = (cube_root(byte << (24 + 3 * LINE_BITS)), cube_root((byte + 1) << (24 + 3 * LINE_BITS)));
    let raise = 1 << (LINE_BITS - 4);
    Line { constant: (low + raise) as u32, linear: (high - low) as u32 }
}

/// The cube root of a number below 2^129, rounded down: bit by bit.
const fn cube_root(cube: u128) -> u128 {
    let mut root: u128 = 0;
    let mut bit = 1_u128 << 42;
    while bit > 0 {
        let tried = root | bit;
        // The cube of `tried` need not fit.
        if tried * tried <= cube / tried {
            root = tried;
        }
        bit >>= 1;
    }
    root
}
