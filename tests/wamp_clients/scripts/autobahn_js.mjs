// autobahn-js as a client: does one item after the other, and prints what came of each as a line of JSON.
import { createRequire } from "node:module";

const given = JSON.parse(process.argv[2]);
const require = createRequire(`${process.cwd()}/`);
globalThis.WebSocket ??= require("ws"); // Node.js before 22 has none of its own
const autobahn = require("autobahn");
const { JSONSerializer, MsgpackSerializer, CBORSerializer } = autobahn.serializer;
const serializers = { json: JSONSerializer, msgpack: MsgpackSerializer, cbor: CBORSerializer };
const getEvents = "wamp.subscription.get_events";
const prefix = given.prefix;

const isBinary = (value) => value instanceof Uint8Array || value instanceof ArrayBuffer;
const plain = (value) => {
    if (isBinary(value)) return { hex: Buffer.from(value).toString("hex") };
    if (Array.isArray(value)) return value.map(plain);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
    return value;
};

function connected(how = {}) {
    const transport =
        given.transport === "websocket"
            ? { type: "websocket", url: given.url, serializers: [new serializers[given.serializer]()] }
            : { type: "rawsocket", host: "127.0.0.1", port: Number(given.url.split(":").at(-1)) };
    const connection = new autobahn.Connection({ realm: given.realm, transports: [transport], max_retries: 0, ...how });
    return new Promise((resolve, reject) => {
        connection.onopen = (session, details) => resolve({ connection, session, details });
        connection.onclose = (reason, details) => reject(new Error(`${reason}: ${details.reason} ${details.message}`)) || true;
        connection.open();
    });
}

async function history(session, topic, match = "exact", kwargs = {}) {
    const subscription = await session.call("wamp.subscription.lookup", [topic, { match }]);
    return session.call(getEvents, [subscription], kwargs);
}

async function authenticated(method, authid, onchallenge) {
    const { connection, details } = await connected({ authmethods: [method], authid, onchallenge });
    connection.close();
    return { authid: details.authid, authrole: details.authrole };
}

async function paged(session, subscription, kwargs, name) {
    const found = [];
    let anchor = {};
    for (;;) {
        const page = await session.call(getEvents, [subscription], { limit: 7, ...kwargs, ...anchor });
        found.push(...page.args.map((event) => event.args[0]));
        if (!page.kwargs.more) return found;
        anchor = { [name]: page.args.at(-1).publication };
    }
}

const items = {
    async join({ details }) {
        const features = details.roles.broker.features;
        return { event_history: features.event_history ?? null, authrole: details.authrole, authmethod: details.authmethod };
    },
    ticket: () => authenticated("ticket", given.ticket[0], () => given.ticket[1]),
    wampcra: () =>
        authenticated("wampcra", given.wampcra[0], (_, method, extra) => {
            let key = given.wampcra[1];
            if (extra.salt) key = autobahn.auth_cra.derive_key(key, extra.salt, extra.iterations, extra.keylen);
            return autobahn.auth_cra.sign(key, extra.challenge);
        }),
    async live({ session }) {
        const events = [];
        const subscriptions = {};
        const patterns = { exact: `${prefix}live.one`, prefix: `${prefix}live`, wildcard: `${prefix.slice(0, -1)}..one` };
        for (const [match, pattern] of Object.entries(patterns)) {
            const handler = (args, kwargs, details) =>
                events.push({
                    match,
                    publication: details.publication,
                    subscription: subscriptions[match],
                    topic: details.topic ?? null,
                    args: plain(args),
                    kwargs: plain(kwargs),
                });
            subscriptions[match] = (await session.subscribe(pattern, handler, { match })).id;
        }
        const options = { acknowledge: true, exclude_me: false };
        const binary = given.serializer === "json" ? "\0AP+A" : Buffer.from([0, 255, 128]);
        const published = await session.publish(`${prefix}live.one`, [7, "x", binary], { price: 12.5 }, options);
        await session.publish(`${prefix}live.end`, [], {}, options);
        for (let turn = 0; turn < 200 && events.length < 4; turn += 1) await new Promise((go) => setTimeout(go, 10));
        const records = {};
        for (const [match, pattern] of Object.entries(patterns)) {
            records[match] = plain((await history(session, pattern, match)).args);
        }
        const first = events.filter((event) => event.publication === published.id);
        return { published: published.id, subscriptions, events: first, records };
    },
    async rpc({ session }) {
        await session.register(`${prefix}add`, ([a, b]) => a + b);
        await session.register(`${prefix}refuse`, () => {
            throw new autobahn.Error(`${prefix}error.refused`, [1], { why: "no" });
        });
        await session.register(`${prefix}steps`, ([count], _, details) => {
            for (let step = 0; step < count; step += 1) details.progress?.([step]);
            return "done";
        });
        const other = await connected();
        const parts = [];
        const progress = (part) => parts.push(part);
        const result = await other.session.call(`${prefix}steps`, [3], {}, { receive_progress: true }).then((it) => it, null, progress);
        const refused = await other.session.call(`${prefix}refuse`).then(() => null, (it) => [it.error, it.args, it.kwargs]);
        const missing = await other.session.call(`${prefix}nothing`).then(() => null, (it) => it.error);
        const add = await other.session.call(`${prefix}add`, [2, 3]);
        other.connection.close();
        return { add, refused, missing, parts, result };
    },
    async counts({ session }) {
        const found = [];
        for (const [count, name] of ["none", "one", "two"].entries()) {
            await session.subscribe(prefix + name, () => {});
            for (let number = 0; number < count; number += 1) await session.publish(prefix + name, [number], {}, { acknowledge: true });
            const result = await history(session, prefix + name);
            found.push({ args: result.args.map((event) => event.args), kwargs: result.kwargs });
        }
        return found;
    },
    async pages({ session }) {
        const subscription = (await session.subscribe(`${prefix}hundred`, () => {})).id;
        for (let number = 0; number < 100; number += 1) {
            await session.publish(`${prefix}hundred`, [number], {}, { acknowledge: true });
        }
        return {
            forwards: await paged(session, subscription, {}, "after_publication"),
            backwards: await paged(session, subscription, { reverse: true }, "before_publication"),
        };
    },
    async arguments({ session }) {
        const topic = `${prefix}hundred`;
        const events = (await history(session, topic)).args;
        const kwargs = {
            reverse: true,
            limit: 5,
            from_time: events[10].timestamp,
            after_time: events[5].timestamp,
            before_time: events[99].timestamp,
            until_time: events[98].timestamp,
            topic,
            from_publication: events[20].publication,
            after_publication: events[19].publication,
            before_publication: events[91].publication,
            until_publication: events[95].publication,
        };
        return (await history(session, topic, "exact", kwargs)).args.map((event) => event.args[0]);
    },
    async many({ session }) {
        let parts = 0;
        let total = 0;
        const progress = (part) => {
            parts += 1;
            total += part.args?.length ?? 1; // a lone event without keyword arguments comes bare
        };
        const subscription = await session.call("wamp.subscription.lookup", [given.many]);
        const result = await session.call(getEvents, [subscription], {}, { receive_progress: true }).then((it) => it, null, progress);
        return { parts, total: total + result.args.length, kwargs: result.kwargs };
    },
};

const client = await connected();
for (const item of given.items) {
    let said;
    try {
        said = { item, value: (await items[item](client)) ?? null };
    } catch (error) {
        said = { item, error: error?.stack ?? JSON.stringify(error) };
    }
    process.stdout.write(`${JSON.stringify(said)}\n`);
}
client.connection.onclose = () => true;
client.connection.close();
process.exitCode = 0;
setTimeout(() => process.exit(), 50); // a connection that an item left open would keep it running
