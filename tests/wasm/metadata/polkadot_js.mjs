// Reads metadata with polkadot.js, and prints what it found (npm @polkadot/types, part of @polkadot/api).
//
// node polkadot_js.mjs FOLDER FILE... > answers.json, where FOLDER has the package in its node_modules, and each FILE holds
// metadata as bytes or is a module whose default export is its hex. An answer has the bytes, and what is in them.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const packages = createRequire(createRequire(join(folder, "package.json")).resolve("@polkadot/api"));
const { Metadata, TypeRegistry } = await import(pathToFileURL(packages.resolve("@polkadot/types")));

const text = (it) => it.toString();
const texts = (them) => them.map(text);
const line = (it) => it.toString().split(/\s+/).filter(Boolean).join(" ");
const hex = (bytes) => "0x" + Buffer.from(bytes.toU8a(true)).toString("hex");
const number = (it) => it.toNumber();
const optional = (it, read) => (it.isSome ? read(it.unwrap()) : null);

function deprecation(it) {
  if (it === undefined || it.isNotDeprecated) return null;
  return it.isDeprecated
    ? { note: text(it.asDeprecated.note), since: optional(it.asDeprecated.since, text) }
    : { note: null, since: null };
}

// Types by name, as they stand in the bytes: polkadot.js rewrites them when it reads them as types.
function namedItem(it, index, fields) {
  return { name: text(it.name), index, fields, docs: texts(it.docs), deprecation: null };
}

function namedEntry(it) {
  const { isPlain, isMap, isDoubleMap } = it.type;
  const [hashers, keys, value, linked] = isPlain
    ? [[], [], it.type.asPlain, false]
    : isMap
      ? [[it.type.asMap.hasher], [it.type.asMap.key], it.type.asMap.value, it.type.asMap.linked.isTrue]
      : isDoubleMap
        ? [[it.type.asDoubleMap.hasher, it.type.asDoubleMap.key2Hasher],
           [it.type.asDoubleMap.key1, it.type.asDoubleMap.key2], it.type.asDoubleMap.value, false]
        : [it.type.asNMap.hashers, it.type.asNMap.keyVec, it.type.asNMap.value, false];
  return { name: text(it.name), modifier: text(it.modifier), hashers: texts(hashers), keys: keys.map(line), value: line(value),
           default: hex(it.fallback), docs: texts(it.docs), linked, deprecation: null, kind: isPlain ? "plain" : "map" };
}

function named(version, metadata) {
  let calls = 0, events = 0;
  const pallets = metadata.modules.map((it, place) => {
    const index = version > 11 ? number(it.index) : place;
    return {
      name: text(it.name), index,
      call_index: it.calls.isSome ? (version > 11 ? index : calls++) : null,
      event_index: it.events.isSome ? (version > 11 ? index : events++) : null,
      prefix: it.storage.isSome ? text(it.storage.unwrap().prefix) : "",
      storage: it.storage.isSome ? it.storage.unwrap().items.map(namedEntry) : [],
      calls: it.calls.unwrapOr([]).map((call, at) =>
        namedItem(call, at, call.args.map((arg) => ({ name: text(arg.name), type: line(arg.type) })))),
      events: it.events.unwrapOr([]).map((event, at) =>
        namedItem(event, at, event.args.map((arg) => ({ name: null, type: line(arg) })))),
      errors: it.errors.map((error, at) => namedItem(error, at, [])),
      constants: it.constants.map((one) => ({ name: text(one.name), type: line(one.type), value: hex(one.value),
                                              docs: texts(one.docs), deprecation: null })),
    };
  });
  const extrinsic = version < 11 ? { versions: [], extensions: [] }
    : { versions: [number(metadata.extrinsic.version)], extensions: texts(metadata.extrinsic.signedExtensions) };
  return { pallets, extrinsic };
}

function described(version, metadata) {
  const { types } = metadata.lookup;
  const field = (it) => ({ name: optional(it.name, text), type: number(it.type) });
  const cases = (it) => it.type.def.asVariant.variants;
  const items = (part) => optional(part, (it) => cases(types[number(it.type)]).map((one) => ({
    name: text(one.name), index: number(one.index), fields: one.fields.map(field), docs: texts(one.docs),
    deprecation: version < 16 ? null : deprecatedCase(it.deprecationInfo, number(one.index)),
  }))) ?? [];
  const named = (it) => ({ name: text(it.name), type: number(it.type) });
  const func = (it, id) => ({ name: text(it.name), inputs: it.inputs.map(named), output: number(it.output), docs: texts(it.docs),
                              deprecation: deprecation(it.deprecationInfo), id });
  const entry = (it) => {
    const map = it.type.isMap ? it.type.asMap : null;
    const key = map && types[number(map.key)].type.def;
    const keys = map && (map.hashers.length > 1 ? key.asTuple.map(number) : [number(map.key)]);
    return { name: text(it.name), modifier: text(it.modifier), hashers: texts(map ? map.hashers : []), keys: keys ?? [],
             value: number(map ? map.value : it.type.asPlain), default: hex(it.fallback), docs: texts(it.docs), linked: false,
             deprecation: deprecation(it.deprecationInfo), kind: map ? "map" : "plain" };
  };
  const pallets = metadata.pallets.map((it) => ({
    name: text(it.name), index: number(it.index),
    call_index: it.calls.isSome ? number(it.index) : null, event_index: it.events.isSome ? number(it.index) : null,
    prefix: it.storage.isSome ? text(it.storage.unwrap().prefix) : "",
    storage: it.storage.isSome ? it.storage.unwrap().items.map(entry) : [],
    calls: items(it.calls), events: items(it.events), errors: items(it.errors),
    constants: it.constants.map((one) => ({ ...named(one), value: hex(one.value), docs: texts(one.docs),
                                            deprecation: deprecation(one.deprecationInfo) })),
    view_functions: (it.viewFunctions ?? []).map((one) => func(one, hex(one.id))),
    associated_types: (it.associatedTypes ?? []).map(named),
    docs: texts(it.docs ?? []), deprecation: deprecation(it.deprecationInfo),
  }));
  const { extrinsic } = metadata;
  const extensions = (extrinsic.transactionExtensions ?? extrinsic.signedExtensions).map((it) => ({
    name: text(it.identifier), type: number(it.type), additional: number(it.implicit ?? it.additionalSigned),
  }));
  const parts = version === 14
    ? Object.fromEntries(types[number(extrinsic.type)].type.params.map((it) => [text(it.name).toLowerCase(), number(it.type.unwrap())]))
    : { address: number(extrinsic.addressType), call: number(extrinsic.callType), signature: number(extrinsic.signatureType),
        extra: version === 15 ? number(extrinsic.extraType) : null };
  const later = version < 15 ? {} : {
    apis: metadata.apis.map((it) => ({ name: text(it.name), functions: it.methods.map((one) => func(one, "0x")), docs: texts(it.docs),
                                       version: version < 16 ? null : it.version.unwrap().toNumber(),
                                       deprecation: deprecation(it.deprecationInfo) })),
    outer_enums: { call: number(metadata.outerEnums.callType), event: number(metadata.outerEnums.eventType),
                   error: number(metadata.outerEnums.errorType) },
    custom: [...metadata.custom.map].map(([name, it]) => ({ name: text(name), type: number(it.type), value: hex(it.value) })),
  };
  return {
    pallets, ...later, types: types.map((it) => portable(it.type)),
    extrinsic: { versions: version < 16 ? [number(extrinsic.version)] : [...extrinsic.versions.toU8a(true)], extensions, ...parts,
                 extensions_by_version: version < 16 ? []
                   : [...extrinsic.transactionExtensionsByVersion].map(([key, value]) => [number(key), value.map((it) => it.unwrap().toNumber())]) },
  };
}

function deprecatedCase(map, index) {
  for (const [key, it] of map) if (number(key) === index) return deprecation(it);
  return null;
}

function portable({ path, params, def, docs }) {
  const field = (it) => ({ name: optional(it.name, text), type: number(it.type), type_name: optional(it.typeName, text),
                           docs: texts(it.docs) });
  const made = { kind: def.type.toLowerCase(), fields: [], cases: [], inside: [], length: 0, name: "" };
  if (def.isComposite) made.fields = def.asComposite.fields.map(field);
  else if (def.isVariant) made.cases = def.asVariant.variants.map((it) => ({ name: text(it.name), index: number(it.index),
                                                                             fields: it.fields.map(field), docs: texts(it.docs) }));
  else if (def.isSequence) made.inside = [number(def.asSequence.type)];
  else if (def.isArray) { made.inside = [number(def.asArray.type)]; made.length = number(def.asArray.len); }
  else if (def.isTuple) made.inside = def.asTuple.map(number);
  else if (def.isPrimitive) made.name = text(def.asPrimitive).toLowerCase();
  else if (def.isCompact) made.inside = [number(def.asCompact.type)];
  else { made.kind = "bits"; made.inside = [number(def.asBitSequence.bitStoreType), number(def.asBitSequence.bitOrderType)]; }
  return { path: texts(path), params: params.map((it) => [text(it.name), optional(it.type, number)]), docs: texts(docs), ...made };
}

async function answer(file) {
  const data = file.endsWith(".js") ? Buffer.from((await import(pathToFileURL(file))).default.slice(2), "hex") : readFileSync(file);
  const bytes = data.subarray(data.indexOf("meta"));
  const registry = new TypeRegistry();
  const version = bytes[4];
  if (version < 14) registry.register("Type", registry.createClass("Text"));
  const metadata = new Metadata(registry, new Uint8Array(bytes))[`asV${version}`];
  const found = version < 14 ? named(version, metadata) : described(version, metadata);
  return { file, hex: bytes.toString("hex"), version, ...found };
}

const answers = [];
for (const file of files) answers.push(await answer(file));
process.stdout.write(JSON.stringify(answers));
