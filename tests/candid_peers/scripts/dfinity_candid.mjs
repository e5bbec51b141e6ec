// @dfinity/candid, and didc beside it, as a codec: for each line of JSON with a `.did`, values and a message, a line with what
// each makes of them. didc is the compiler's own codec, which takes and gives values in their textual form.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { compiled, fromPlain, IDL, methodsOf, toPlain } from "./interface.mjs";

const didc = createRequire(`${process.cwd()}/`)("@dfinity/didc");
const bytesOf = (text) => new Uint8Array(Buffer.from(text, "hex")); // a view into a larger buffer is read from that buffer's start
const hex = (bytes) => Buffer.from(bytes).toString("hex");

const taken = async (did) => methodsOf(await compiled(did)).take.argTypes;

const answers = {
    async encode({ did, values }) {
        const types = await taken(did);
        return hex(IDL.encode(types, fromPlain(types, values)));
    },
    async decode({ did, message }) {
        const types = await taken(did);
        return toPlain(types, IDL.decode(types, bytesOf(message)));
    },
    "didc encode"({ did, given }) {
        return didc.encode({ idl: did, input: given, withType: { kind: "methodParams", name: "take" } });
    },
    "didc decode"({ did, given }) {
        return didc.decode({ idl: did, input: given, serviceMethod: "take", useServiceMethodReturnType: false });
    },
    async methods({ did }) {
        return { compiled: Object.keys(methodsOf(await compiled(did))), didc: didc.getServiceMethods(did) };
    },
    // Microseconds of one call to encode, and to decode, in each round.
    async times({ did, message, rounds, calls }) {
        const types = await taken(did);
        const data = bytesOf(message);
        const values = IDL.decode(types, data);
        const timed = (work) =>
            Array.from({ length: rounds }, () => {
                const began = performance.now();
                for (let call = 0; call < calls; call++) work();
                return ((performance.now() - began) * 1_000) / calls;
            });
        return [timed(() => IDL.encode(types, values)), timed(() => IDL.decode(types, data))];
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const { ask, ...given } = JSON.parse(line);
    let answer;
    try {
        answer = { value: await answers[ask](given) };
    } catch (error) {
        answer = { error: `${error?.message ?? error}` };
    }
    console.log(JSON.stringify(answer));
}
