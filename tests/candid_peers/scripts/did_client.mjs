// A client made from a `.did` text, with @dfinity/candid: the first line of JSON names the text, the URL of the gateway, the
// canister and the caller; each further one a method and its arguments, and is answered by a line with the results.
import { createInterface } from "node:readline";
import { compiled, fromPlain, IDL, methodsOf, toPlain } from "./interface.mjs";

const said = (line) => console.log(JSON.stringify(line));

async function called({ url, canister, caller }, methods, { method, values }) {
    const { argTypes, retTypes } = methods[method];
    const answer = await fetch(`${url}/icrc/${canister}/${encodeURIComponent(method)}`, {
        method: "POST",
        headers: { "Content-Type": "application/candid", "Icrc-Caller": caller },
        body: IDL.encode(argTypes, fromPlain(argTypes, values)),
    });
    const body = new Uint8Array(await answer.arrayBuffer());
    if (!answer.ok) return { status: answer.status, refusal: Buffer.from(body).toString() };
    return { status: answer.status, type: answer.headers.get("Content-Type"), results: toPlain(retTypes, IDL.decode(retTypes, body)) };
}

let told, methods;
for await (const line of createInterface({ input: process.stdin })) {
    const given = JSON.parse(line);
    try {
        if (told) said({ value: await called(told, methods, given) });
        else {
            methods = methodsOf(await compiled(given.did));
            told = given;
            said({ value: Object.keys(methods) });
        }
    } catch (error) {
        said({ error: `${error?.stack ?? error}` });
    }
}
