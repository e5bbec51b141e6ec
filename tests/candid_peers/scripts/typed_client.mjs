// Compiles the client in TypeScript beside what the compiler makes of a `.did` file, strictly, and lets it make its calls:
// node typed_client.mjs FILE URL CANISTER CALLER, in the folder of the packages.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [file, ...told] = process.argv.slice(2);
const bindgen = join(process.cwd(), "node_modules/@icp-sdk/bindgen/dist/esm/core/index.js");
const { generate } = await import(pathToFileURL(bindgen).href);
const folder = mkdtempSync(join(process.cwd(), "typed-"));
try {
    const output = { force: true, actor: { disabled: true }, declarations: { flat: true, typescript: true } };
    await generate({ didFile: file, outDir: folder, output });
    copyFileSync(fileURLToPath(new URL("typed_client.ts", import.meta.url)), join(folder, "typed_client.ts"));
    writeFileSync(join(folder, "package.json"), '{"type": "module"}');
    const compilerOptions = { strict: true, target: "es2022", module: "nodenext", skipLibCheck: true, types: ["node"] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["typed_client.ts"] }));
    const tsc = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", folder], { encoding: "utf8" });
    if (tsc.status) throw new Error(tsc.stdout);
    const { run } = await import(pathToFileURL(join(folder, "typed_client.js")).href);
    console.log(JSON.stringify(await run(...told)));
} finally {
    rmSync(folder, { recursive: true });
}
