// Answers questions about tries with smoldot's, compiled to WebAssembly (npm @acala-network/chopsticks-executor).
//
// node oracle.mjs FOLDER < questions.json > answers.json, where FOLDER has the package in its node_modules.
// A question is {"entries": [[key, value], ...], "version": 0 | 1} for a root, or {"root": hash, "nodes": [...]} for
// the entries that a proof shows; its answer is {"root": hash}, {"entries": [...]} or {"error": text}.

import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const folder = process.argv[2] ?? ".";
const found = createRequire(join(folder, "package.json")).resolve("@acala-network/chopsticks-executor");
const { default: ours, ...named } = await import(pathToFileURL(found));
const oracle = ours ?? named;

async function answer(question) {
  try {
    if ("entries" in question) {
      return { root: await oracle.calculate_state_root(question.entries, question.version) };
    }
    return { entries: await oracle.decode_proof(question.root, question.nodes) };
  } catch (error) {
    return { error: String(error) };
  }
}

const answers = [];
for (const question of JSON.parse(await text(process.stdin))) {
  answers.push(await answer(question));
}
console.log(JSON.stringify(answers));
