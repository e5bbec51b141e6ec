//! Storage proofs of Substrate's base-16 trie, read as section 3 of the suite's README says.

use crate::blake2b::blake2_256;
use crate::vectors::Verification;
use std::collections::{BTreeMap, BTreeSet};

const CHILD_STORAGE: &[u8] = b":child_storage:default:";
const EMPTY_ROOT: &str = "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314";
const MOST_NIBBLES: usize = 65_535;

type Nibbles = Vec<u8>;

enum Held {
    Inline(Vec<u8>),
    Hashed(Vec<u8>),
}

enum Node {
    Empty,
    Leaf { partial: Nibbles, value: Held },
    Branch { partial: Nibbles, value: Option<Held>, children: Vec<Option<Vec<u8>>> },
}

/// The values of the keys in their order, or the name of the first error.
pub fn verify(proof: &Verification) -> Result<Vec<Option<Vec<u8>>>, String> {
    let nodes: BTreeMap<Vec<u8>, &Vec<u8>> = proof.nodes.iter().map(|node| (blake2_256(node), node)).collect();
    if proof.strict && nodes.len() < proof.nodes.len() {
        return Err("DuplicateNode".into());
    }
    let mut reader = Reader { nodes, touched: BTreeSet::new() };
    let mut root = Some(proof.root.clone());
    if let Some(name) = &proof.child {
        let key = [CHILD_STORAGE, name].concat();
        root = reader.get(&proof.root, &key, true)?;
    }
    let mut values = Vec::new();
    for key in &proof.keys {
        values.push(match &root {
            Some(root) => reader.get(root, key, false)?,
            None => None,
        });
    }
    if proof.strict && reader.touched.len() < reader.nodes.len() {
        return Err("UnusedNodes".into());
    }
    Ok(values)
}

struct Reader<'a> {
    nodes: BTreeMap<Vec<u8>, &'a Vec<u8>>,
    touched: BTreeSet<Vec<u8>>,
}

impl<'a> Reader<'a> {
    /// The value of a key under a root. The root of a child trie stands inside its node and has 32 bytes.
    fn get(&mut self, root: &[u8], key: &[u8], is_child_root: bool) -> Result<Option<Vec<u8>>, String> {
        let path: Nibbles = key.iter().flat_map(|byte| vec![byte >> 4, byte & 15]).collect();
        let mut rest = &path[..];
        let mut reference = root.to_vec();
        let mut at_root = true;
        loop {
            let node = decode(&self.node(&reference, at_root)?).ok_or("InvalidNode")?;
            at_root = false;
            let (partial, value, children) = match node {
                Node::Empty => return Ok(None),
                Node::Leaf { partial, value } => (partial, Some(value), Vec::new()),
                Node::Branch { partial, value, children } => (partial, value, children),
            };
            rest = match rest.strip_prefix(&partial[..]) {
                Some(rest) => rest,
                None => return Ok(None),
            };
            if rest.is_empty() {
                return match value {
                    None => Ok(None),
                    Some(Held::Inline(value)) if is_child_root && value.len() != 32 => Err("InvalidChildRoot".into()),
                    Some(Held::Inline(value)) => Ok(Some(value)),
                    Some(Held::Hashed(_)) if is_child_root => Err("InvalidChildRoot".into()),
                    Some(Held::Hashed(hash)) => self.touch(&hash, "MissingNode").map(Some),
                };
            }
            reference = match children.get(rest[0] as usize) {
                Some(Some(child)) => child.clone(),
                _ => return Ok(None),
            };
            rest = &rest[1..];
        }
    }

    /// The bytes of a node: those of an inline one, or those that have the hash.
    fn node(&mut self, reference: &[u8], is_root: bool) -> Result<Vec<u8>, String> {
        let hex: String = reference.iter().map(|byte| format!("{:02x}", byte)).collect();
        if is_root && hex == EMPTY_ROOT && !self.nodes.contains_key(reference) {
            return Ok(vec![0]);
        }
        match (is_root, reference.len()) {
            (true, _) => self.touch(reference, "RootMismatch"),
            (_, 32) => self.touch(reference, "MissingNode"),
            _ => Ok(reference.to_vec()),
        }
    }

    fn touch(&mut self, hash: &[u8], missing: &str) -> Result<Vec<u8>, String> {
        let found = self.nodes.get(hash).ok_or(missing)?;
        self.touched.insert(hash.to_vec());
        Ok(found.to_vec())
    }
}

fn decode(data: &[u8]) -> Option<Node> {
    let mut input = data;
    let first = take(&mut input, 1)?[0];
    let (low_bits, is_branch, has_value, is_hashed) = match first {
        0 => return Some(Node::Empty),
        0x40..=0x7f => (63, false, true, false),
        0x80..=0xbf => (63, true, false, false),
        0xc0..=0xff => (63, true, true, false),
        0x20..=0x3f => (31, false, true, true),
        0x10..=0x1f => (15, true, true, true),
        _ => return None,
    };
    let mut count = (first & low_bits) as usize;
    if count == low_bits as usize {
        loop {
            let more = take(&mut input, 1)?[0] as usize;
            count += more;
            if more < 255 || count >= MOST_NIBBLES {
                break;
            }
        }
    }
    let count = std::cmp::min(count, MOST_NIBBLES);
    let packed = take(&mut input, (count + 1) / 2)?;
    let mut partial: Nibbles = packed.iter().flat_map(|byte| vec![byte >> 4, byte & 15]).collect();
    if count % 2 == 1 && partial.remove(0) != 0 {
        return None;
    }
    let bitmap = if is_branch { u16::from_le_bytes(take(&mut input, 2).map(|it| [it[0], it[1]])?) } else { 0 };
    if is_branch && bitmap == 0 {
        return None;
    }
    let value = match (has_value, is_hashed) {
        (false, _) => None,
        (true, true) => Some(Held::Hashed(take(&mut input, 32)?.to_vec())),
        (true, false) => Some(Held::Inline(take_with_length(&mut input)?)),
    };
    if !is_branch {
        return value.map(|value| Node::Leaf { partial, value });
    }
    let mut children = Vec::new();
    for index in 0..16 {
        children.push(if bitmap >> index & 1 == 1 { Some(take_with_length(&mut input)?) } else { None });
    }
    Some(Node::Branch { partial, value, children })
}

fn take<'a>(input: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    if input.len() < size {
        return None;
    }
    let (taken, rest) = input.split_at(size);
    *input = rest;
    Some(taken)
}

/// Bytes behind their length, a canonical `Compact<u32>`.
fn take_with_length(input: &mut &[u8]) -> Option<Vec<u8>> {
    let first = *input.first()?;
    let (size, least) = match first & 3 {
        0 => (1, 0),
        1 => (2, 1 << 6),
        2 => (4, 1 << 14),
        _ => (5, 1 << 30),
    };
    let encoded = take(input, size)?;
    let number = match size {
        5 if first >> 2 == 0 => encoded[1..].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
        5 => return None,
        _ => encoded.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)) >> 2,
    };
    if number < least {
        return None;
    }
    take(input, number as usize).map(|it| it.to_vec())
}
