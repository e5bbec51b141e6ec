// Uses a served network as somebody with polkadot-api does, with descriptors that `papi add` made of its metadata:
// node papi.mjs URL URL_THAT_CAN_BE_CUT legacy|new
// The last word is the interface for what polkadot-api has no typed call for.

import { parachain, relay as relayChain } from "@polkadot-api/descriptors";
import { Keyring } from "@polkadot/keyring";
import type { KeyringPair } from "@polkadot/keyring/types";
import { cryptoWaitReady } from "@polkadot/util-crypto";
import { createClient, InvalidTxError, type PolkadotClient, type PolkadotSigner, type TxFinalizedPayload } from "polkadot-api";
import { getPolkadotSigner } from "polkadot-api/signer";
import { getWsProvider, type StatusChange, WsEvent } from "polkadot-api/ws";
import { filter, firstValueFrom, map, take, toArray } from "rxjs";
import { WebSocket } from "ws";
import { askForACut, askForARestart, childKey, hex, item, pause, refusal } from "./items.mjs";
import { MARKER, NEWCOMER, PUBLISHER, READER } from "./network.mjs";
import { legacyReadings, newReadings } from "./papi_readings.mjs";

const [url, cuttable, dialect] = process.argv.slice(2) as [string, string, "legacy" | "new"];
const websocketClass = WebSocket as unknown as typeof globalThis.WebSocket;
const provider = (address: string, onStatusChanged = (_: StatusChange) => {}) =>
  getWsProvider(address, { websocketClass, onStatusChanged });
const connect = (...to: Parameters<typeof provider>) => createClient(provider(...to));
const clients = [url, ...[NEWCOMER, READER].map((id) => `${url}/para/${id}`)].map((it) => connect(it));
const [client, ...others] = clients as [PolkadotClient, ...PolkadotClient[]];
const relay = client.getTypedApi(relayChain);
const [newcomer, reader] = others.map((other) => other.getTypedApi(parachain)) as [Para, Para];
type Para = ReturnType<typeof client.getTypedApi<typeof parachain>>;

await cryptoWaitReady();
const keyring = new Keyring({ type: "sr25519" });
const signing = (pair: KeyringPair, type: "Sr25519" | "Ed25519" = "Sr25519"): PolkadotSigner =>
  getPolkadotSigner(pair.publicKey, type, (input) => pair.sign(input));
const pairs = ["//Alice", "//Bob", "//Charlie", "//Dave"].map((uri) => keyring.addFromUri(uri));
const [alice, bob, charlie, dave] = pairs as [KeyringPair, KeyringPair, KeyringPair, KeyringPair];
const DOT = 10_000_000_000n;
const KEY = `0x${"07".repeat(32)}`;
const best = { at: "best" } as const;

const shown = ({ type, value }: TxFinalizedPayload["events"][number]) => ({
  name: `${type}.${value.type}`,
  fields: value.value,
});
const newest = async () => (await client.getBestBlocks())[0]!;
const readings = dialect === "legacy" ? legacyReadings(client) : newReadings(client, () => provider(url));

await item("connect", async () => ({
  chain: await readings.chain(),
  genesis: (await client.getChainSpecData()).genesisHash,
  spec_name: (await relay.apis.Core.version()).spec_name,
  ss58: await relay.constants.System.SS58Prefix(),
  parachains: await Promise.all(others.map(async (other) => (await other.getChainSpecData()).genesisHash)),
}));

await item("metadata", async () => {
  const { hash } = await client.getFinalizedBlock();
  const bytes = await client.getMetadata(hash);
  return { version: bytes[4], bytes: bytes.length };
});

await item("head", async () => {
  const { hash, number } = await newest();
  const at = { at: hash };
  const account = await relay.query.System.Account.getValue(bob.address, at);
  return {
    at: hash,
    header_number: number,
    number: await relay.query.System.Number.getValue(at),
    timestamp: await relay.query.Timestamp.Now.getValue(at),
    free: account.data.free,
    nonce: account.nonce,
  };
});

await item("past", async () => {
  const { hash, number } = await client.getFinalizedBlock();
  const release = client.hodlBlock(hash);
  await firstValueFrom(client.finalizedBlock$.pipe(filter((block) => block.number >= number + 2)));
  const seen = await relay.query.System.Number.getValue({ at: hash });
  const parent = await relay.query.System.ParentHash.getValue({ at: hash });
  release();
  return { at: hash, header_number: number, number: seen, parent };
});

await item("paged keys", async () => {
  const prefix = await relay.query.System.Account.getKey();
  const pages = await readings.pagesOfKeys(prefix, 5);
  const entries = await relay.query.System.Account.getEntries(best);
  const [first] = entries;
  return { pages, entries: entries.length, first_account: first?.keyArgs[0], first_free: first?.value.data.free };
});

await item("storage subscription", async () => ({
  numbers: await firstValueFrom(
    relay.query.System.Number.watchValue(best).pipe(map(({ value }) => value), take(4), toArray()),
  ),
}));

await item("head subscription", async () => ({
  heads: await firstValueFrom(client.blocks$.pipe(take(6), toArray())),
  finalized: await firstValueFrom(client.finalizedBlock$.pipe(map(({ number }) => number), take(3), toArray())),
}));

// Returns the bare calls of a block: an extrinsic is its length, its version, which says whether it is signed, and its call.
const bareCalls = async (of: PolkadotClient, api: typeof relay | Para, block: string) => {
  const bodies = (await of.getBlockBody(block)).map((bytes) => bytes.slice([1, 2, 4][bytes[0]! & 3]!));
  const bare = bodies.filter((bytes) => bytes[0] === 4);
  return Promise.all(bare.map(async (bytes) => (await api.txFromCallData(bytes.slice(1))).decodedCall));
};

await item("block", async () => {
  const named = ({ type, value }: { type: string; value: { type: string } }) => `${type}.${value.type}`;
  const inner = await bareCalls(others[1]!, reader, (await others[1]!.getFinalizedBlock()).hash);
  const given = inner.find((call) => named(call) === "ParachainSystem.set_validation_data")!.value.value.data;
  return {
    relay: (await bareCalls(client, relay, (await client.getFinalizedBlock()).hash)).map(named),
    parachain: inner.map(named),
    relay_parent_number: given.validation_data.relay_parent_number,
    relay_parent_storage_root: given.validation_data.relay_parent_storage_root,
    nodes: given.relay_chain_state.map(hex),
  };
});

await item("child storage", async () => {
  const { hash: at } = await newest();
  const keys = await readings.childKeys(PUBLISHER, at);
  return {
    at,
    keys,
    second_page: await readings.childKeysAfter(PUBLISHER, 7, keys[6]!, at),
    value: await readings.childValue(PUBLISHER, keys[0]!, at),
    size: await readings.childSize(PUBLISHER, keys[0]!, at),
    hash: await readings.childHash(PUBLISHER, keys[0]!, at),
  };
});

await item("child proof", async () => {
  const { at, provedAt, key, nodes, topNodes } = await readings.childProof(PUBLISHER);
  return {
    at,
    proved_at: provedAt,
    state_root: (await client.getBlockHeader(at)).stateRoot,
    child_key: childKey(PUBLISHER),
    key,
    value: await readings.childValue(PUBLISHER, key, at),
    nodes,
    top_nodes: topNodes,
  };
});

await item("transfer", async () => {
  const fresh = keyring.addFromUri("//papi");
  const call = relay.tx.Balances.transfer_keep_alive({ dest: { type: "Id", value: fresh.address }, value: 5n * DOT });
  const before = await relay.query.System.Account.getValue(alice.address);
  const predicted = await call.getEstimatedFees(alice.publicKey);
  const ended = await call.signAndSubmit(signing(alice));
  const [after, there] = await relay.query.System.Account.getValues([[alice.address], [fresh.address]]);
  return {
    block: ended.block.hash,
    amount: 5n * DOT,
    events: ended.events.map(shown),
    before: before.data.free,
    after: after!.data.free,
    nonces: [before.nonce, after!.nonce],
    received: there!.data.free,
    predicted_fee: predicted,
  };
});

await item("other signatures", async () => {
  const other = new Keyring({ type: "ed25519" }).addFromUri("//Alice//other");
  const give = (to: string, value: bigint) =>
    relay.tx.Balances.transfer_keep_alive({ dest: { type: "Id", value: to }, value });
  await give(other.address, 3n * DOT).signAndSubmit(signing(alice));
  const ended = await give(alice.address, DOT).signAndSubmit(signing(other, "Ed25519"));
  return { events: { ed25519: ended.events.map(shown) } };
});

await item("register", async () => {
  const ended = await relay.tx.Broadcaster.register_publisher({ para_id: NEWCOMER }).signAndSubmit(signing(bob));
  const info = await relay.query.Broadcaster.RegisteredPublishers.getValue(NEWCOMER);
  return {
    events: ended.events.map(shown),
    manager: info?.manager,
    deposit: info?.deposit,
    constant: await relay.constants.Broadcaster.PublisherDeposit(),
    reserved: (await relay.query.System.Account.getValue(bob.address)).data.reserved,
  };
});

await item("failing call", async () => {
  const before = await relay.query.System.Account.getValue(bob.address);
  const ended = await relay.tx.Broadcaster.register_publisher({ para_id: NEWCOMER }).signAndSubmit(signing(bob));
  const after = await relay.query.System.Account.getValue(bob.address);
  const failed = ended.dispatchError as { type: "Module"; value: { type: string; value: { type: string } } };
  return {
    events: ended.events.map(shown),
    name: `${failed.value.type}.${failed.value.value.type}`,
    paid: before.data.free - after.data.free,
    nonces: [before.nonce, after.nonce],
  };
});

await item("subscribe", async () => {
  const call = reader.tx.Subscriber.subscribe({ publisher: NEWCOMER, keys: [KEY] }).decodedCall;
  const ended = await reader.tx.Sudo.sudo({ call }).signAndSubmit(signing(alice));
  return { events: ended.events.map(shown) };
});

await item("publish", async () => {
  const value = new Uint8Array(21).fill(0xab);
  const told = firstValueFrom(
    relay.event.Broadcaster.DataPublished.watchBest().pipe(
      map(({ block, events }) => ({ block, event: events.find(({ payload }) => payload.publisher === NEWCOMER) })),
      filter(({ event }) => event !== undefined),
    ),
  );
  const ended = await newcomer.tx.Publisher.publish({ items: [[KEY, value, 100]] }).signAndSubmit(signing(alice));
  const { block, event } = await told;
  return {
    events: ended.events.map(shown),
    told: { name: "Broadcaster.DataPublished", fields: event!.payload },
    key: KEY,
    value: hex(value),
    ttl: 100,
    entry: await readings.childValue(NEWCOMER, KEY, block.hash),
  };
});

await item("callback", async () => {
  const told = firstValueFrom(
    reader.event.Subscriber.DataProcessed.watchBest().pipe(
      map(({ events }) => events.find(({ payload }) => payload.value_size === 40)),
      filter((event) => event !== undefined),
    ),
  );
  const value = new Uint8Array(40).fill(0xcd);
  await newcomer.tx.Publisher.publish({ items: [[KEY, value, 0]] }).signAndSubmit(signing(alice));
  return { key: KEY, told: { name: "Subscriber.DataProcessed", fields: (await told).payload } };
});

const refused = async (work: () => Promise<unknown>) => {
  const error: unknown = await refusal(work);
  return error instanceof InvalidTxError ? { kind: error.error.type, reason: error.error.value.type } : { kind: String(error) };
};

await item("nonces", async () => {
  const remark = relay.tx.System.remark_with_event({ remark: new TextEncoder().encode("nonce") });
  const signer = signing(charlie);
  const { nonce } = await relay.query.System.Account.getValue(charlie.address);
  const later = remark.signAndSubmit(signer, { nonce: nonce + 1 });
  await pause(1_200);
  // The new interface does not list the pool: what waits is not in a block.
  const waiting =
    dialect === "legacy"
      ? (await client._request("author_pendingExtrinsics", [])).length
      : (await relay.query.System.Account.getValue(charlie.address, best)).nonce - nonce;
  const sooner = await remark.signAndSubmit(signer, { nonce });
  const second = await later;
  return {
    waiting,
    blocks: [sooner.block.hash, second.block.hash],
    nonces: [nonce, (await relay.query.System.Account.getValue(charlie.address)).nonce],
    stale: await refused(() => remark.signAndSubmit(signer, { nonce })),
  };
});

await item("mortality", async () => {
  const remark = relay.tx.System.remark({ remark: new TextEncoder().encode("mortal") });
  const signer = signing(dave);
  const born = await client.getFinalizedBlock();
  const release = client.hodlBlock(born.hash);
  const mortal = await remark.signAndSubmit(signer, { mortality: { mortal: true, period: 16 } });
  const immortal = await remark.signAndSubmit(signer, { mortality: { mortal: false } });
  const { nonce } = await relay.query.System.Account.getValue(dave.address);
  const old = await remark.sign(signer, { at: born.hash, nonce, mortality: { mortal: true, period: 4 } });
  await firstValueFrom(client.finalizedBlock$.pipe(filter(({ number }) => number > born.number + 8)));
  release();
  return {
    blocks: [mortal.block.hash, immortal.block.hash],
    expired: await refused(() => client.submit(old)),
  };
});

await item("bad signature", async () => {
  const signed = await relay.tx.System.remark({ remark: new Uint8Array(3) }).sign(signing(dave));
  signed[60]! ^= 1;
  return refused(() => client.submit(signed));
});

await item("sudo", async () => {
  const call = relay.tx.Broadcaster.force_deregister_publisher({ para_id: NEWCOMER }).decodedCall;
  const ended = await relay.tx.Sudo.sudo({ call }).signAndSubmit(signing(alice));
  const left = await relay.query.Broadcaster.RegisteredPublishers.getValue(NEWCOMER);
  const no = await relay.tx.Sudo.sudo({ call }).signAndSubmit(signing(bob));
  return { events: ended.events.map(shown), left: left !== undefined, refused: no.events.map(shown) };
});

await item("runtime apis", async () => ({
  nonce: await relay.apis.AccountNonceApi.account_nonce(alice.address),
  system_nonce: await readings.nextNonce(alice.address, alice.publicKey),
}));

await item("fork", async () => {
  const ask = (method: string, ...params: unknown[]) => client._request<string>(method, params);
  await ask("dev_setBlockTime", "manual");
  try {
    const [blocks, ended]: [string[], string[]] = [[], []];
    relay.tx.System.remark({ remark: new Uint8Array(4) }).signSubmitAndWatch(signing(dave)).subscribe({
      next: (it) => {
        if (it.type === "txBestBlocksState" && it.found && !blocks.includes(it.block.hash)) blocks.push(it.block.hash);
        if (it.type === "finalized") ended.push(it.block.hash);
      },
      error: (error) => ended.push(String(error)),
    });
    const until = async (done: () => boolean) => {
      while (!done()) await pause(20);
    };
    while (blocks.length === 0) {
      await pause(100);
      await ask("dev_newBlock");
      await pause(100);
    }
    const first = blocks[0]!;
    await ask("dev_setHead", await relay.query.System.ParentHash.getValue({ at: first }));
    await ask("dev_setStorage", [[MARKER, "0x01"]]);
    const second = await ask("dev_newBlock");
    await until(() => blocks.length === 2);
    await ask("dev_newBlock", 2);
    await until(() => ended.length > 0);
    const markers = await Promise.all([first, second].map((at) => client.rawQuery(MARKER, { at })));
    return { first, second, blocks, ended, markers };
  } finally {
    await ask("dev_setBlockTime", "500ms");
  }
});

await item("reconnection", async () => {
  const statuses: unknown[] = [];
  const again = connect(cuttable, (status) => statuses.push(status.type));
  const numbers: number[] = [];
  again.finalizedBlock$.subscribe({ next: ({ number }) => numbers.push(number), error: () => {} });
  const more = async (count: number) => {
    while (numbers.length < count) await pause(50);
  };
  await more(2);
  const seen = statuses.length;
  askForACut();
  while (statuses.length === seen) await pause(20);
  const before = numbers.length;
  await more(before + 3);
  const number = await again.getTypedApi(relayChain).query.System.Number.getValue(best);
  again.destroy();
  return { before: numbers.slice(0, before), after: numbers.slice(before), number };
});

await item("restart", async () => {
  const statuses: WsEvent[] = [];
  const other = connect(url, (status) => statuses.push(status.type));
  const api = other.getTypedApi(relayChain);
  const look = async () => ({
    genesis: await other._request<string>("chainSpec_v1_genesisHash", []),
    nonce: await api.apis.AccountNonceApi.account_nonce(charlie.address, best),
  });
  const change = () =>
    firstValueFrom(
      api.tx.System.remark({ remark: new Uint8Array(4) }).signSubmitAndWatch(signing(charlie)).pipe(
        map((it) => (it.type === "txBestBlocksState" && it.found ? it.block.hash : undefined)),
        filter((it) => it !== undefined),
      ),
    );
  const finalized: number[] = [];
  other.finalizedBlock$.subscribe({ next: ({ number }) => finalized.push(number), error: () => {} });
  const blocks = [await change()];
  const seen = [await look()];
  await askForARestart();
  while (statuses.at(-1) !== WsEvent.CONNECTED) await pause(20);
  const known = finalized.length;
  while (finalized.length === known) await pause(20);
  seen.push(await look());
  blocks.push(await change());
  seen.push(await look());
  other.destroy();
  return { seen, blocks };
});

for (const each of clients) each.destroy();
