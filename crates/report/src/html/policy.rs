//! A page's content security policy: its own style and script, by their digests, and nothing else.

/// The policy of a page with one style and one script.
pub(super) fn policy(style: &str, script: &str) -> String {
    let [style, script] = [style, script].map(|text| base64(&sha256(text.as_bytes())));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; style-src-attr 'unsafe-inline'; \
         script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

/// Round constants: the first 32 bits of the fractions of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];
/// The first 32 bits of the fractions of the square roots of the first 8 primes.
const START: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// SHA-256 (FIPS 180-4). Not for secrets: nothing here is one.
fn sha256(text: &[u8]) -> [u8; 32] {
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize((text.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend((text.len() as u64 * 8).to_be_bytes());
    let mut state = START;
    for block in padded.chunks_exact(64) {
        let mixed = mix(&state, block);
        for (word, mixed) in state.iter_mut().zip(mixed) {
            *word = word.wrapping_add(mixed);
        }
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn mix(state: &[u32; 8], block: &[u8]) -> [u32; 8] {
    let mut schedule = [0_u32; 64];
    for (word, bytes) in schedule.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    for i in 16..64 {
        let (early, late) = (schedule[i - 15], schedule[i - 2]);
        let small0 = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let small1 = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        schedule[i] = schedule[i - 16].wrapping_add(small0).wrapping_add(schedule[i - 7]).wrapping_add(small1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, word) in ROUNDS.iter().zip(schedule) {
        let big1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = e & f ^ !e & g;
        let added = h.wrapping_add(big1).wrapping_add(chosen).wrapping_add(*round).wrapping_add(word);
        let big0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = a & b ^ a & c ^ b & c;
        (h, g, f, e) = (g, f, e, d.wrapping_add(added));
        (d, c, b, a) = (c, b, a, added.wrapping_add(big0).wrapping_add(majority));
    }
    [a, b, c, d, e, f, g, h]
}

/// As `data:` addresses and digests are written.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(part.get(i).copied().unwrap_or(0)));
        for place in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]);
            text.push(if place <= part.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf … | openssl dgst -sha256 -binary | base64` has them.
    #[test]
    fn digests_are_those_that_browsers_compute() {
        let digest = |text: &str| base64(&sha256(text.as_bytes()));
        assert_eq!(digest(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(digest("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        for (length, expected) in [(55, LENGTH_55), (56, LENGTH_56), (64, LENGTH_64), (1000, LENGTH_1000)] {
            assert_eq!(digest(&"a".repeat(length)), expected, "{length}");
        }
    }

    const LENGTH_55: &str = "n0OQ+NMMLdkuyfCVtl4rmumwqSWlJY4kHJ8ekQ9zQxg=";
    const LENGTH_56: &str = "s1Q5pKxvCUi21vnjxq8PX1kM4g8b3nCQ73lwaG7Gc4o=";
    const LENGTH_64: &str = "/+BU/nrgy23GXDr5th1SCfQ5hR20PQulmXM33xVGaOs=";
    const LENGTH_1000: &str = "Qe3s5C1j6Nm/UVqbppMuHCDLyfWl0TRkWttdsblzfqM=";
}
