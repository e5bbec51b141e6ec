// Runs calls of a runtime in another host: smoldot's executor, compiled to WebAssembly (npm @acala-network/chopsticks-executor).
//
// node other_host.mjs FOLDER, where FOLDER has the package in its node_modules; a question a line, an answer a line.
// {"wasm": hex, "storage": [[key, value], ...]} sets up; {"call": [method, hex]} answers {"result", "diff", "milliseconds"}
// or {"error"}; {"calls": [...]} does so for calls in a row, with the last one's result; {"keep": true} writes the diff of the last call into the storage, and answers {}.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

for (const level of ["log", "info", "debug", "warn", "error"]) console[level] = () => {}; // the host logs what runtimes say
const found = createRequire(join(process.argv[2], "package.json")).resolve("@acala-network/chopsticks-executor");
const { default: ours, ...named } = await import(pathToFileURL(found));
const host = ours ?? named;

let wasm = "0x";
let storage = new Map();
let keys = [];
let diff = [];

function place(key) {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

function keep() {
  for (const [key, value] of diff) {
    const at = place(key);
    const known = keys[at] === key;
    if (value === null || value === undefined) {
      storage.delete(key);
      if (known) keys.splice(at, 1);
    } else {
      storage.set(key, value);
      if (!known) keys.splice(at, 0, key);
    }
  }
  diff = [];
}

const callbacks = {
  getStorage: async (key) => storage.get(key),
  getNextKey: async (prefix, key) => {
    let at = place(key);
    if (keys[at] === key) at += 1;
    return at < keys.length && keys[at].startsWith(prefix) ? keys[at] : undefined;
  },
  offchainGetStorage: async () => undefined,
  offchainTimestamp: async () => 0,
  offchainRandomSeed: async () => "0x" + "00".repeat(32),
  offchainSubmitTransaction: async () => false,
};

async function call(calls) {
  const task = {
    id: 1,
    wasm,
    calls: calls.map(([method, data]) => [method, [data]]),
    storageProofSize: 0,
    mockSignatureHost: 0,
    allowUnresolvedImports: true,
    runtimeLogLevel: 0,
  };
  const [start, used] = [performance.now(), process.cpuUsage()];
  const answer = await host.run_task(task, callbacks);
  const milliseconds = performance.now() - start;
  const { user, system } = process.cpuUsage(used);
  const done = answer.Call ?? answer.call;
  if (done === undefined) return { error: JSON.stringify(answer), milliseconds };
  diff = done.storageDiff;
  return { result: done.result, diff, milliseconds, cpu_milliseconds: (user + system) / 1e3 };
}

async function answer(question) {
  if ("wasm" in question) {
    wasm = question.wasm;
    storage = new Map(question.storage);
    keys = [...storage.keys()].sort();
    return {};
  }
  if ("keep" in question) {
    keep();
    return {};
  }
  try {
    return await call(question.calls ?? [question.call]);
  } catch (error) {
    return { error: String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
}
