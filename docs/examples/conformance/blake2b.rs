//! Blake2b with 32 bytes of output (RFC 7693), as `sp_core::hashing::blake2_256`.

const IV: [u64; 8] = [
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
];

/// The order of the message words in each round; rounds 10 and 11 repeat the first two.
const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// The columns and diagonals that a round mixes.
const MIXED: [[usize; 4]; 8] = [
    [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
    [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];

const BLOCK: usize = 128;

pub fn blake2_256(data: &[u8]) -> Vec<u8> {
    let mut state = IV;
    state[0] ^= 0x0101_0000 ^ 32;
    let blocks = std::cmp::max(1, (data.len() + BLOCK - 1) / BLOCK);
    for index in 0..blocks {
        let end = std::cmp::min(data.len(), (index + 1) * BLOCK);
        let mut block = [0u8; BLOCK];
        block[..end - index * BLOCK].copy_from_slice(&data[index * BLOCK..end]);
        compress(&mut state, &block, end as u64, index + 1 == blocks);
    }
    state[..4].iter().flat_map(|word| word.to_le_bytes().to_vec()).collect()
}

fn compress(state: &mut [u64; 8], block: &[u8; BLOCK], counted: u64, is_last: bool) {
    let mut words = [0u64; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks(8)) {
        let mut eight = [0u8; 8];
        eight.copy_from_slice(bytes);
        *word = u64::from_le_bytes(eight);
    }
    let mut v = [0u64; 16];
    v[..8].copy_from_slice(state);
    v[8..].copy_from_slice(&IV);
    v[12] ^= counted;
    if is_last {
        v[14] = !v[14];
    }
    for round in 0..12 {
        for (step, [a, b, c, d]) in MIXED.iter().enumerate() {
            let order = &SIGMA[round % 10];
            mix(&mut v, [*a, *b, *c, *d], words[order[2 * step]], words[order[2 * step + 1]]);
        }
    }
    for index in 0..8 {
        state[index] ^= v[index] ^ v[index + 8];
    }
}

fn mix(v: &mut [u64; 16], [a, b, c, d]: [usize; 4], x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}
