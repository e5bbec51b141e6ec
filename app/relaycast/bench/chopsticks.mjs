// Times one workload of smoldot's trie, compiled to WebAssembly (npm @acala-network/chopsticks-executor).
//
// node chopsticks.mjs FOLDER < question.json > answer.json, where FOLDER has the package in its node_modules.
// A question is {"entries": [[key, value], ...]} for a root of state version 1, {"root": hash, "nodes": [...]} for what a
// proof shows, or {"nodes": [...], "updates": [[key, value], ...]} for the proof with other values; all of it is hex.
// The answer is {"result": ..., "seconds": median of one call}.

import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const found = createRequire(join(process.argv[2] ?? ".", "package.json")).resolve("@acala-network/chopsticks-executor");
const { default: ours, ...named } = await import(pathToFileURL(found));
const smoldot = ours ?? named;
const question = JSON.parse(await text(process.stdin));

function work() {
  if ("entries" in question) return smoldot.calculate_state_root(question.entries, 1);
  if ("updates" in question) return smoldot.create_proof(question.nodes, question.updates);
  return smoldot.decode_proof(question.root, question.nodes);
}

const result = await work();
const times = [];
const end = performance.now() + 500;
while (times.length < 3 || performance.now() < end) {
  const start = performance.now();
  await work();
  times.push(performance.now() - start);
}
times.sort((left, right) => left - right);
console.log(JSON.stringify({ result, seconds: times[times.length >> 1] / 1000 }));
