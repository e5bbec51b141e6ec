//! Runs a conformance suite (`relaycast vectors export DIR`) against an implementation in Rust.
//!
//! `Implementation` is what you write: one method for each kind of vector, next to your pallet's tests. A method that is
//! not written yet answers `None`, and its vectors are counted as not run. The example below implements one form, the
//! verification of storage proofs, in plain Rust; put `sp_trie::verify_trie_proof` or your pallet in its place.

mod blake2b;
mod trie;
mod vectors;

use std::collections::BTreeMap;
use std::process::exit;
use vectors::{Block, Suite, Verdict, Verification};

/// What is tested. Each method gets the input of a vector and answers what its expectation is compared with.
trait Implementation {
    /// The nodes that a collator keeps of what it collected, as indexes into `block.nodes`, ascending.
    fn prune(&self, _block: &Block) -> Option<Vec<usize>> {
        None
    }

    /// What the block comes to: the panic's cause, or all that the pallet told and stored.
    fn verify(&self, _block: &Block) -> Option<Verdict> {
        None
    }

    /// The values that a storage proof gives, or the name of the error.
    fn verify_proof(&self, _proof: &Verification) -> Option<Result<Vec<Option<Vec<u8>>>, String>> {
        None
    }
}

struct Example;

impl Implementation for Example {
    fn verify_proof(&self, proof: &Verification) -> Option<Result<Vec<Option<Vec<u8>>>, String>> {
        Some(trie::verify(proof))
    }
}

/// How the vectors of one form ended.
#[derive(Default)]
struct Count {
    agree: usize,
    not_run: usize,
    differ: Vec<String>,
}

impl Count {
    fn note<T: PartialEq + std::fmt::Debug>(&mut self, id: &str, found: Option<T>, expected: &T) {
        match found {
            None => self.not_run += 1,
            Some(found) if &found == expected => self.agree += 1,
            Some(found) => self.differ.push(format!("{}: expected {:?}, got {:?}", id, expected, found)),
        }
    }
}

fn run(suite: &Suite, subject: &dyn Implementation) -> Result<BTreeMap<String, Count>, String> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for (kind, vector) in suite.vectors()? {
        let form = vector["test"].as_str().map_or(kind.clone(), |test| format!("{} {}", kind, test));
        let id = vectors::text(&vector["id"])?;
        match form.as_str() {
            "subscriber" => {
                let block = Block::read(&vector)?;
                if let Some(pruned) = &block.pruned {
                    let count = counts.entry("subscriber prune".into()).or_default();
                    count.note(&id, subject.prune(&block), pruned);
                }
                let count = counts.entry("subscriber verify".into()).or_default();
                count.note(&id, subject.verify(&block), &block.expect);
            }
            "proofs verification" => {
                let proof = Verification::read(&vector)?;
                counts.entry(form).or_default().note(&id, subject.verify_proof(&proof), &proof.expect);
            }
            _ => counts.entry(form).or_default().not_run += 1,
        }
    }
    Ok(counts)
}

fn main() {
    let directory = match std::env::args().nth(1) {
        Some(directory) => directory,
        None => {
            eprintln!("usage: harness DIR, a suite that `relaycast vectors export DIR` has written");
            exit(2)
        }
    };
    let counts = Suite::open(&directory).and_then(|suite| run(&suite, &Example)).unwrap_or_else(|error| {
        eprintln!("{}: {}", directory, error);
        exit(2)
    });
    let mut differ = 0;
    for (form, count) in &counts {
        println!("{:24} {:5} agree  {:5} differ  {:5} not run", form, count.agree, count.differ.len(), count.not_run);
        count.differ.iter().take(3).for_each(|line| println!("  {}", line));
        differ += count.differ.len();
    }
    exit(if differ > 0 { 1 } else { 0 })
}
