// What scripts for Candid share: an interface compiled as for any JavaScript client, and values as JSON, by their types.
//
// Plain JSON of a value: numbers as decimal text; floats and blobs as hex digits; an opt as a list; a record as a list of
// [number of the field, value], a variant as such a pair; a principal as its text, a function as [principal, name].
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.cwd()}/`);
export const { IDL, idlLabelToId } = require("@dfinity/candid");
export const { Principal } = require("@dfinity/principal");
const bindgen = join(process.cwd(), "node_modules/@icp-sdk/bindgen/dist/esm/core/index.js"); // what an import of it would find
const { generate } = await import(pathToFileURL(bindgen).href);

// Returns the service of a `.did` text, as @icp-sdk/bindgen compiles it.
export async function compiled(did) {
    const folder = mkdtempSync(join(tmpdir(), "did-"));
    try {
        const didFile = join(folder, "it.did");
        writeFileSync(didFile, did);
        const output = { force: true, actor: { disabled: true }, declarations: { flat: true } };
        await generate({ didFile, outDir: folder, output });
        const made = readFileSync(join(folder, "it.did.js"), "utf8");
        // A factory takes the library as its argument; the import at the head names another edition of it.
        const module = made.replace(/^import .*$/m, "");
        const { idlFactory } = await import(`data:text/javascript;base64,${Buffer.from(module).toString("base64")}`);
        return idlFactory({ IDL });
    } finally {
        rmSync(folder, { recursive: true });
    }
}

export const methodsOf = (service) => Object.fromEntries(service._fields);

function floatOf(hex) {
    const bytes = Buffer.from(hex, "hex");
    return bytes.readDoubleBE(0);
}

function hexOf(number) {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(number);
    return bytes.toString("hex");
}

const isByte = (type) => type instanceof IDL.FixedNatClass && type._bits === 8;

// Plain JSON to what the library takes.
class FromPlain extends IDL.Visitor {
    visitPrimitive(_, given) {
        return given;
    }
    visitNumber(_, given) {
        return BigInt(given);
    }
    visitFloat(_, given) {
        return floatOf(given);
    }
    visitPrincipal(_, given) {
        return Principal.fromText(given);
    }
    visitService(_, given) {
        return Principal.fromText(given);
    }
    visitFunc(_, [principal, method]) {
        return [Principal.fromText(principal), method];
    }
    visitVec(_, inner, given) {
        return isByte(inner) ? new Uint8Array(Buffer.from(given, "hex")) : given.map((it) => inner.accept(this, it));
    }
    visitOpt(_, inner, given) {
        return given.map((it) => inner.accept(this, it));
    }
    visitRecord(_, fields, given) {
        const values = new Map(given);
        return Object.fromEntries(fields.map(([key, type]) => [key, type.accept(this, values.get(idlLabelToId(key)))]));
    }
    visitTuple(_, components, given) {
        const values = new Map(given);
        return components.map((type, at) => type.accept(this, values.get(at)));
    }
    visitVariant(_, fields, [number, value]) {
        const [key, type] = fields.find(([name]) => idlLabelToId(name) === number);
        return { [key]: type.accept(this, value) };
    }
    visitRec(_, type, given) {
        return type.accept(this, given);
    }
}

// What the library gives to plain JSON.
class ToPlain extends IDL.Visitor {
    visitPrimitive(_, value) {
        return value;
    }
    visitNumber(_, value) {
        return value.toString();
    }
    visitFloat(_, value) {
        return hexOf(value);
    }
    visitPrincipal(_, value) {
        return value.toText();
    }
    visitService(_, value) {
        return value.toText();
    }
    visitFunc(_, [principal, method]) {
        return [principal.toText(), method];
    }
    visitVec(_, inner, value) {
        if (isByte(inner)) return Buffer.from(value).toString("hex");
        return Array.from(value, (it) => inner.accept(this, it));
    }
    visitOpt(_, inner, value) {
        return value.map((it) => inner.accept(this, it));
    }
    visitRecord(_, fields, value) {
        return fields.map(([key, type]) => [idlLabelToId(key), type.accept(this, value[key])]);
    }
    visitTuple(_, components, value) {
        return components.map((type, at) => [at, type.accept(this, value[at])]);
    }
    visitVariant(_, fields, value) {
        const [key, held] = Object.entries(value)[0];
        const [, type] = fields.find(([name]) => name === key);
        return [idlLabelToId(key), type.accept(this, held)];
    }
    visitRec(_, type, value) {
        return type.accept(this, value);
    }
}

export const fromPlain = (types, given) => types.map((type, at) => type.accept(new FromPlain(), given[at]));
export const toPlain = (types, values) => types.map((type, at) => type.accept(new ToPlain(), values[at]));
