// wampy.js as a client: does one item after the other, and prints what came of each as a line of JSON.
import { createRequire } from "node:module";

const given = JSON.parse(process.argv[2]);
const require = createRequire(`${process.cwd()}/`);
const { Wampy } = require("wampy");
const { JsonSerializer } = require("wampy/JsonSerializer.js");
const { MsgpackSerializer } = require("wampy/MsgpackSerializer.js");
const { CborSerializer } = require("wampy/CborSerializer.js");
const { createHmac, pbkdf2Sync } = await import("node:crypto");
const serializers = { json: JsonSerializer, msgpack: MsgpackSerializer, cbor: CborSerializer };
const getEvents = "wamp.subscription.get_events";
const prefix = given.prefix;

const plain = (value) => {
    if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString("hex") };
    if (Array.isArray(value)) return value.map(plain);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
    return value;
};

async function connected(how = {}) {
    const client = new Wampy(given.url, {
        ws: require("ws"),
        realm: given.realm,
        serializer: new serializers[given.serializer](),
        autoReconnect: false,
        uriValidation: "loose",
        ...how,
    });
    return { client, details: await client.connect() };
}

async function history(client, topic, match = "exact", kwargs = {}) {
    const found = await client.call("wamp.subscription.lookup", [topic, { match }]);
    return client.call(getEvents, { argsList: [found.argsList[0]], argsDict: kwargs });
}

async function authenticated(method, authid, onChallenge) {
    const { client, details } = await connected({ authmethods: [method], authid, onChallenge });
    await client.disconnect();
    return { authid: details.authid, authrole: details.authrole };
}

async function paged(client, subscription, kwargs, name) {
    const found = [];
    let anchor = {};
    for (;;) {
        const page = await client.call(getEvents, { argsList: [subscription], argsDict: { limit: 7, ...kwargs, ...anchor } });
        found.push(...page.argsList.map((event) => event.args[0]));
        if (!page.argsDict.more) return found;
        anchor = { [name]: page.argsList.at(-1).publication };
    }
}

const items = {
    async join({ details }) {
        const features = details.roles.broker.features;
        return { event_history: features.event_history ?? null, authrole: details.authrole, authmethod: details.authmethod };
    },
    ticket: () => authenticated("ticket", given.ticket[0], () => given.ticket[1]),
    wampcra: () =>
        authenticated("wampcra", given.wampcra[0], (_, { challenge, salt, iterations, keylen }) => {
            const secret = given.wampcra[1];
            const key = salt ? pbkdf2Sync(secret, salt, iterations, keylen, "sha256").toString("base64") : secret;
            return createHmac("sha256", key).update(challenge).digest("base64");
        }),
    async live({ client }) {
        const events = [];
        const subscriptions = {};
        const patterns = { exact: `${prefix}live.one`, prefix: `${prefix}live`, wildcard: `${prefix.slice(0, -1)}..one` };
        for (const [match, pattern] of Object.entries(patterns)) {
            const handler = ({ details, argsList, argsDict }) =>
                events.push({
                    match,
                    publication: details.publication ?? null,
                    subscription: subscriptions[match],
                    topic: details.topic ?? null,
                    args: plain(argsList ?? []),
                    kwargs: plain(argsDict ?? {}),
                });
            subscriptions[match] = (await client.subscribe(pattern, handler, { match })).subscriptionId;
        }
        const binary = given.serializer === "json" ? "\0AP+A" : Buffer.from([0, 255, 128]);
        const payload = { argsList: [7, "x", binary], argsDict: { price: 12.5 } };
        const { client: publisher } = await connected();
        const published = (await publisher.publish(`${prefix}live.one`, payload)).publicationId;
        await publisher.publish(`${prefix}live.end`, [0]);
        await publisher.disconnect();
        for (let turn = 0; turn < 200 && events.length < 4; turn += 1) await new Promise((go) => setTimeout(go, 10));
        const records = {};
        for (const [match, pattern] of Object.entries(patterns)) {
            records[match] = plain((await history(client, pattern, match)).argsList);
        }
        return { published, subscriptions, events: events.filter((event) => event.args.length > 1), records };
    },
    async rpc({ client }) {
        await client.register(`${prefix}add`, ({ argsList: [a, b] }) => ({ argsList: [a + b] }));
        await client.register(`${prefix}refuse`, ({ error_handler: refuse }) => {
            refuse({ error: `${prefix}error.refused`, argsList: [1], argsDict: { why: "no" } });
        });
        await client.register(`${prefix}steps`, ({ argsList: [count], details, result_handler: give }) => {
            for (let step = 0; details.receive_progress && step < count; step += 1) give({ argsList: [step], options: { progress: true } });
            return { argsList: ["done"] };
        });
        const { client: other } = await connected();
        const parts = [];
        const progress = ({ argsList }) => parts.push(argsList[0]);
        const result = await other.call(`${prefix}steps`, [3], { progress_callback: progress });
        const told = (it) => [it.errorUri ?? it.error, it.argsList, it.argsDict];
        const refused = await other.call(`${prefix}refuse`).then(() => null, told);
        const missing = await other.call(`${prefix}nothing`).then(() => null, (it) => told(it)[0]);
        const add = await other.call(`${prefix}add`, [2, 3]);
        await other.disconnect();
        return { add: add.argsList[0], refused, missing, parts, result: result.argsList[0] };
    },
    async counts({ client }) {
        const found = [];
        for (const [count, name] of ["none", "one", "two"].entries()) {
            await client.subscribe(prefix + name, () => {});
            for (let number = 0; number < count; number += 1) await client.publish(prefix + name, [number]);
            const result = await history(client, prefix + name);
            found.push({ args: (result.argsList ?? []).map((event) => event.args), kwargs: result.argsDict });
        }
        return found;
    },
    async pages({ client }) {
        const subscription = (await client.subscribe(`${prefix}hundred`, () => {})).subscriptionId;
        for (let number = 0; number < 100; number += 1) await client.publish(`${prefix}hundred`, [number]);
        return {
            forwards: await paged(client, subscription, {}, "after_publication"),
            backwards: await paged(client, subscription, { reverse: true }, "before_publication"),
        };
    },
    async arguments({ client }) {
        const topic = `${prefix}hundred`;
        const events = (await history(client, topic)).argsList;
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
        return (await history(client, topic, "exact", kwargs)).argsList.map((event) => event.args[0]);
    },
    async many({ client }) {
        let parts = 0;
        let total = 0;
        const progress = ({ argsList }) => {
            parts += 1;
            total += argsList.length;
        };
        const subscription = (await client.call("wamp.subscription.lookup", [given.many])).argsList[0];
        const result = await client.call(getEvents, [subscription], { progress_callback: progress });
        return { parts, total: total + (result.argsList ?? []).length, kwargs: result.argsDict };
    },
};

const client = await connected();
for (const item of given.items) {
    let said;
    try {
        said = { item, value: (await items[item](client)) ?? null };
    } catch (error) {
        said = { item, error: `${error?.stack} ${JSON.stringify(error)}` };
    }
    const told = JSON.stringify(said, (_, value) => (typeof value === "bigint" ? Number(value) : value)); // msgpackr's ids
    process.stdout.write(`${told}\n`);
}
await client.client.disconnect();
process.exit(0);
