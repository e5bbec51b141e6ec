//! The vectors as Rust values: what their JSON says, with bytes for hexadecimal.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;

type Bytes = Vec<u8>;
pub type Pairs = Vec<(Bytes, Bytes)>;

/// A suite on disk.
pub struct Suite {
    directory: PathBuf,
    manifest: Value,
}

impl Suite {
    pub fn open(directory: &str) -> Result<Suite, String> {
        let directory = PathBuf::from(directory);
        let manifest = read(&directory.join("suite.json"))?;
        Ok(Suite { directory, manifest })
    }

    /// All vectors with their kinds, in the order of the manifest.
    pub fn vectors(&self) -> Result<Vec<(String, Value)>, String> {
        let mut all = Vec::new();
        for entry in list(&self.manifest["files"])? {
            let (path, kind) = (text(&entry["path"])?, text(&entry["kind"])?);
            if kind == "document" {
                continue;
            }
            for vector in list(&read(&self.directory.join(path))?["vectors"])? {
                all.push((kind.clone(), vector.clone()));
            }
        }
        let promised = number(&self.manifest["vectors"])?;
        if all.len() as u64 != promised {
            return Err(format!("suite.json promises {} vectors, there are {}", promised, all.len()));
        }
        Ok(all)
    }
}

/// One block of a subscriber (kind `subscriber`): the input, what is kept of the proof, and what comes of it.
pub struct Block {
    pub config: Value,
    pub subscriptions: Vec<(u32, Vec<Bytes>)>,
    pub before: Pairs,
    pub relay_root: Bytes,
    pub relay_parent_number: u32,
    pub seed: Bytes,
    pub crowded: bool,
    pub budget: Weight,
    pub static_keys: Vec<Bytes>,
    pub nodes: Vec<Bytes>,
    pub collected: Option<Vec<usize>>,
    pub pruned: Option<Vec<usize>>,
    pub given: Vec<usize>,
    pub expect: Verdict,
}

#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Weight {
    pub ref_time: u64,
    pub proof_size: u64,
}

/// What a block comes to.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Panic { cause: String },
    Done { consumed: Weight, complete: bool, callbacks: Vec<Callback>, events: Vec<Bytes>, after: Pairs },
}

/// `on_data_updated`, with the state of the time to live in SCALE. A deletion that is told has neither.
#[derive(Debug, PartialEq)]
pub struct Callback {
    pub publisher: u32,
    pub key: Bytes,
    pub value: Option<Bytes>,
    pub ttl_state: Option<Bytes>,
}

impl Block {
    pub fn read(vector: &Value) -> Result<Block, String> {
        let indexes = |name: &str| match &vector[name] {
            Value::Null => Ok(None),
            found => each(found, |it| number(it).map(|index| index as usize)).map(Some),
        };
        Ok(Block {
            config: vector["config"].clone(),
            subscriptions: each(&vector["subscriptions"], |it| Ok((number(&it[0])? as u32, each(&it[1], bytes)?)))?,
            before: pairs(&vector["before"])?,
            relay_root: bytes(&vector["relay_root"])?,
            relay_parent_number: number(&vector["relay_parent_number"])? as u32,
            seed: bytes(&vector["seed"])?,
            crowded: vector["crowded"] == true,
            budget: weight(&vector["budget"])?,
            static_keys: each(&vector["static_keys"], bytes)?,
            nodes: each(&vector["nodes"], bytes)?,
            collected: indexes("collected")?,
            pruned: indexes("pruned")?,
            given: indexes("given")?.ok_or("no field given")?,
            expect: Verdict::read(&vector["expect"])?,
        })
    }
}

impl Verdict {
    fn read(expect: &Value) -> Result<Verdict, String> {
        if let Value::Object(panic) = &expect["panic"] {
            return Ok(Verdict::Panic { cause: text(&panic["cause"])? });
        }
        Ok(Verdict::Done {
            consumed: weight(&expect["consumed"])?,
            complete: expect["complete"] == true,
            callbacks: each(&expect["callbacks"], |it| {
                let (publisher, key) = (number(&it[0])? as u32, bytes(&it[1])?);
                Ok(Callback { publisher, key, value: optional(&it[2])?, ttl_state: optional(&it[3])? })
            })?,
            events: each(&expect["events"], bytes)?,
            after: pairs(&expect["after"])?,
        })
    }
}

/// A storage proof that is verified (kind `proofs`, form `verification`).
pub struct Verification {
    pub root: Bytes,
    pub nodes: Vec<Bytes>,
    pub keys: Vec<Bytes>,
    pub strict: bool,
    /// The name of a child trie, where the keys are its.
    pub child: Option<Bytes>,
    pub expect: Result<Vec<Option<Bytes>>, String>,
}

impl Verification {
    pub fn read(vector: &Value) -> Result<Verification, String> {
        let expect = &vector["expect"];
        Ok(Verification {
            root: bytes(&vector["root"])?,
            nodes: each(&vector["nodes"], bytes)?,
            keys: each(&vector["keys"], bytes)?,
            strict: vector["strict"] == true,
            child: optional(&vector["child"])?,
            expect: if expect["error"].is_null() { Ok(each(&expect["values"], optional)?) } else { Err(text(&expect["error"])?) },
        })
    }
}

fn read(path: &PathBuf) -> Result<Value, String> {
    let content = fs::read(path).map_err(|error| format!("{}: {}", path.display(), error))?;
    serde_json::from_slice(&content).map_err(|error| format!("{}: {}", path.display(), error))
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("expected a list, got {}", value))
}

fn each<T>(value: &Value, read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    list(value)?.iter().map(read).collect()
}

pub fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(String::from).ok_or_else(|| format!("expected text, got {}", value))
}

/// Numbers above 2^53 are text of digits.
fn number(value: &Value) -> Result<u64, String> {
    let digits = value.as_str().and_then(|text| text.parse().ok());
    value.as_u64().or(digits).ok_or_else(|| format!("expected a number, got {}", value))
}

fn weight(value: &Value) -> Result<Weight, String> {
    Ok(Weight { ref_time: number(&value["ref_time"])?, proof_size: number(&value["proof_size"])? })
}

fn pairs(value: &Value) -> Result<Pairs, String> {
    each(value, |it| Ok((bytes(&it[0])?, bytes(&it[1])?)))
}

fn optional(value: &Value) -> Result<Option<Bytes>, String> {
    if value.is_null() { Ok(None) } else { bytes(value).map(Some) }
}

fn bytes(value: &Value) -> Result<Bytes, String> {
    let wrong = || format!("expected 0x and hexadecimal digits, got {}", value);
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).ok_or_else(wrong)?;
    let pair = |at| digits.get(at..at + 2).and_then(|it| u8::from_str_radix(it, 16).ok());
    (0..digits.len()).step_by(2).map(|at| pair(at).ok_or_else(wrong)).collect()
}
