// Prints what PAPI's checksums of calls, storage items, constants and events are (packages of npm's polkadot-api).
//
// node papi_checksums.mjs FOLDER FILE... > answers.json, where FOLDER has the package in its node_modules, and each FILE is a
// module whose default export is metadata as hex. An answer is {"call Balances.transfer": checksum, ...}.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const packages = createRequire(createRequire(join(folder, "package.json")).resolve("polkadot-api"));
const loaded = (name) => import(pathToFileURL(packages.resolve(name)));
const { getChecksumBuilder, getLookupFn } = await loaded("@polkadot-api/metadata-builders");
const { decAnyMetadata, unifyMetadata } = await loaded("@polkadot-api/substrate-bindings");

const typeOf = (part) => (typeof part === "object" ? part.type : part);

async function checksums(file) {
  const hex = (await import(pathToFileURL(file))).default;
  const metadata = unifyMetadata(decAnyMetadata("0x" + hex.slice(hex.indexOf("6d657461"))));
  const lookup = getLookupFn(metadata);
  const build = getChecksumBuilder(lookup);
  const cases = (part) => (part == null ? [] : Object.keys(lookup(typeOf(part)).value ?? {}));
  const found = {};
  for (const { name, calls, events, storage, constants } of metadata.pallets) {
    for (const item of cases(calls)) found[`call ${name}.${item}`] = build.buildCall(name, item);
    for (const item of cases(events)) found[`event ${name}.${item}`] = build.buildEvent(name, item);
    for (const item of storage?.items ?? []) found[`storage ${name}.${item.name}`] = build.buildStorage(name, item.name);
    for (const item of constants) found[`constant ${name}.${item.name}`] = build.buildConstant(name, item.name);
  }
  return found;
}

process.stdout.write(JSON.stringify(await Promise.all(files.map(checksums))));
