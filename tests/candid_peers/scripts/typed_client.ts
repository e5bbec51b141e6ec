// A client in TypeScript of a broadcaster: every call is checked against the types that @icp-sdk/bindgen makes of its `.did`.
import { IDL } from "@icp-sdk/core/candid";
import { Principal } from "@icp-sdk/core/principal";
import { idlFactory, type _SERVICE, type Event, type ICRC16 } from "./broadcaster.did.js";

type Method = keyof _SERVICE & string;

// Returns an object with the methods of a canister, each a call over HTTP.
function clientOf(url: string, canister: string, caller: string): _SERVICE {
    const service = idlFactory({ IDL }) as unknown as { _fields: [Method, IDL.FuncClass][] };
    const called = async (name: string, { argTypes, retTypes }: IDL.FuncClass, values: unknown[]) => {
        const answer = await fetch(`${url}/icrc/${canister}/${name}`, {
            method: "POST",
            headers: { "Content-Type": "application/candid", "Icrc-Caller": caller },
            body: new Uint8Array(IDL.encode(argTypes, values)),
        });
        if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
        const results = IDL.decode(retTypes, new Uint8Array(await answer.arrayBuffer()));
        return results[0];
    };
    return Object.fromEntries(
        service._fields.map(([name, type]) => [name, (...values: unknown[]) => called(name, type, values)]),
    ) as unknown as _SERVICE;
}

const data: ICRC16 = { Map: [["price", { Nat: 2n ** 200n + 1n }], ["raw", { Blob: Uint8Array.of(0, 255) }]] };
const event: Event = {
    id: 2n ** 64n,
    prev_id: [],
    prevId: [1n],
    timestamp: 1_700_000_000_000_000_000n,
    namespace: "com.example.price",
    source: [Principal.anonymous()],
    data,
    headers: [[["relaycast:test", { Option: [{ Bool: true }] }]]],
};

export async function run(url: string, canister: string, caller: string): Promise<unknown> {
    const client = clientOf(url, canister, caller);
    const published = await client.icrc72_publish([event]);
    const relayed = await client.icrc72_publish_relay([{ ...event, source: Principal.fromText(caller) }]);
    const confirmed = await client.icrc72_confirm_messages([2n ** 200n + 1n]);
    const { id, timestamp, namespace } = event;
    const source = Principal.fromText(caller);
    await client.icrc72_handle_notification([
        { id, timestamp, namespace, data, source, eventId: id, prevEventId: [], headers: [], filter: ["price > 5"] },
    ]);
    const stats = await client.icrc72_get_broadcaster_stats();
    const ids = published.map((result) => {
        const [it] = result;
        return it && "Ok" in it ? Array.from(it.Ok, String) : null;
    });
    const names = stats.map(([name]) => name);
    return { ids, relayed: relayed.length, all: "allAccepted" in confirmed, names };
}
