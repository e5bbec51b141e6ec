// Runs modules of WebAssembly with smoldot's host (npm @acala-network/chopsticks-executor), one answer for each.
//
// node host_calls.mjs FOLDER < questions.json > answers.json, where FOLDER has the package in its node_modules.
// A question is {"wasm": hex, "storage": {key: value}, "children": {name: {key: value}}}: its method "run" is called.
// An answer is {"result", "diff", "logs"} or {"error"}; in "diff" a child trie's keys stand behind its prefixed name.

import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const found = createRequire(join(process.argv[2] ?? ".", "package.json")).resolve("@acala-network/chopsticks-executor");
const { default: ours, ...named } = await import(pathToFileURL(found));
const host = ours ?? named;
console.info = () => {}; // log lines of runtimes are in the answers

const PREFIX = `0x${Buffer.from(":child_storage:default:").toString("hex")}`;

async function answer({ wasm, storage, children }) {
  const tries = Object.entries(children).map(([name, held]) => [PREFIX + name.slice(2), held]);
  const nextOf = (keys, prefix, key) => keys.sort().find((it) => it > key && it.startsWith(prefix));
  const callbacks = {
    getStorage: async (key) => {
      const [child, held] = tries.find(([it]) => key.startsWith(it) && key !== it) ?? ["0x", storage];
      return held[`0x${key.slice(child.length)}`];
    },
    getNextKey: async (prefix, key) => {
      const [child, held] = tries.find(([it]) => prefix.startsWith(it)) ?? ["0x", storage];
      return nextOf(Object.keys(held), `0x${prefix.slice(child.length)}`, `0x${key.slice(child.length)}`);
    },
    offchainGetStorage: async () => undefined,
    offchainTimestamp: async () => 0,
    offchainRandomSeed: async () => `0x${"00".repeat(32)}`,
    offchainSubmitTransaction: async () => false,
  };
  const task = {
    wasm,
    calls: [["run", ["0x"]]],
    id: 0,
    mockSignatureHost: 0,
    storageProofSize: 0,
    allowUnresolvedImports: false,
    runtimeLogLevel: 3,
  };
  try {
    const { Call, Error: error } = await host.run_task(task, callbacks);
    if (error !== undefined) return { error };
    return { result: Call.result, diff: Object.fromEntries(Call.storageDiff.map(([key, value]) => [key, value ?? null])), logs: Call.runtimeLogs };
  } catch (error) {
    return { error: String(error) };
  }
}

const answers = [];
for (const question of JSON.parse(await text(process.stdin))) answers.push(await answer(question));
console.log(JSON.stringify(answers));
