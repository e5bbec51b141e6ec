// Uses a served network as somebody with @polkadot/api does: node polkadot_js.mjs URL URL_THAT_CAN_BE_CUT

import { ApiPromise, Keyring, WsProvider } from "@polkadot/api";
import { MARKER, NEWCOMER, PUBLISHER, READER } from "./network.mjs";
import { askForACut, askForARestart, blockOf, childKey, hex, item, pause, refusal } from "./items.mjs";

const [url, cuttable] = process.argv.slice(2);
const connect = (address) => ApiPromise.create({ provider: new WsProvider(address, 200), noInitWarn: true });
const relay = await connect(url);
const [newcomer, reader] = await Promise.all([NEWCOMER, READER].map((id) => connect(`${url}/para/${id}`)));
const keyring = new Keyring({ type: "sr25519" });
const [alice, bob, charlie, dave] = ["//Alice", "//Bob", "//Charlie", "//Dave"].map((uri) => keyring.addFromUri(uri));
const DOT = 10_000_000_000n;
const KEY = "0x" + "07".repeat(32);

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const shown = ({ event }) => ({
  name: `${capital(event.section)}.${event.method}`,
  fields: Object.fromEntries((event.data.names ?? []).map((name, index) => [name, event.data[index].toJSON()])),
});

// Sends a call and returns how it ended in its block.
function send(api, call, signer, options = {}) {
  return new Promise((resolve, reject) => {
    const ended = (result) => {
      if (result.isError) reject(new Error(result.status.toString()));
      const block = blockOf(result.status);
      if (block) resolve({ block, result });
    };
    call.signAndSend(signer, options, ended).catch(reject);
  });
}

// Follows new blocks until one has an event that is wanted.
function eventually(api, wanted) {
  return new Promise((resolve, reject) => {
    const look = async (head) => {
      const at = await api.at(head.hash);
      const found = (await at.query.system.events()).map(shown).find(wanted);
      if (found) {
        stop.then((unsubscribe) => unsubscribe());
        resolve({ event: found, block: head.hash.toHex() });
      }
    };
    const stop = api.rpc.chain.subscribeNewHeads((head) => look(head).catch(reject));
  });
}

// Collects what a subscription brings, until there are `count`.
function collect(count, subscribe) {
  return new Promise((resolve, reject) => {
    const seen = [];
    const stop = subscribe((it) => {
      seen.push(it);
      if (seen.length === count) stop.then((unsubscribe) => unsubscribe()).then(() => resolve(seen), reject);
    });
    stop.catch(reject);
  });
}

await item("connect", async () => ({
  chain: (await relay.rpc.system.chain()).toString(),
  genesis: relay.genesisHash.toHex(),
  spec_name: relay.runtimeVersion.specName.toString(),
  ss58: relay.registry.chainSS58,
  parachains: [newcomer, reader].map((api) => api.genesisHash.toHex()),
}));

await item("metadata", async () => ({
  version: relay.runtimeMetadata.version,
  relay: relay.runtimeMetadata.asLatest.pallets.map(({ name }) => name.toString()),
  parachain: reader.runtimeMetadata.asLatest.pallets.map(({ name }) => name.toString()),
}));

await item("names", async () => ({
  unknown: [
    relay.tx.balances.transferKeepAlive,
    relay.tx.broadcaster.registerPublisher,
    relay.tx.sudo.sudo,
    relay.query.system.account,
    relay.query.paras.heads,
    relay.query.broadcaster.registeredPublishers,
    relay.events.broadcaster.PublisherRegistered.is,
    relay.errors.broadcaster.AlreadyRegistered.is,
    relay.consts.balances.existentialDeposit,
    relay.consts.broadcaster.maxValueLength,
    newcomer.tx.publisher.publish,
    newcomer.tx.parachainSystem.setValidationData,
    reader.query.subscriber.previousPublishedDataRoots,
    reader.events.subscriber.DataProcessed.is,
    reader.tx.subscriber.enablePublisher,
  ].flatMap((found, index) => (found === undefined ? [index] : [])),
}));

await item("head", async () => {
  const at = await relay.rpc.chain.getBlockHash();
  const [header, api] = [await relay.rpc.chain.getHeader(at), await relay.at(at)];
  const account = await api.query.system.account(bob.address);
  return {
    at: at.toHex(),
    header_number: header.number.toNumber(),
    number: (await api.query.system.number()).toNumber(),
    timestamp: (await api.query.timestamp.now()).toNumber(),
    free: account.data.free.toBigInt(),
    nonce: account.nonce.toNumber(),
  };
});

await item("past", async () => {
  const number = (await relay.rpc.chain.getHeader()).number.toNumber() - 2;
  const at = await relay.rpc.chain.getBlockHash(number);
  const api = await relay.at(at);
  return {
    at: at.toHex(),
    header_number: number,
    number: (await api.query.system.number()).toNumber(),
    parent: (await api.query.system.parentHash()).toHex(),
  };
});

await item("paged keys", async () => {
  const pages = [];
  let startKey;
  do {
    const page = await relay.query.system.account.keysPaged({ args: [], pageSize: 5, ...(startKey && { startKey }) });
    pages.push(page.map((key) => key.toHex()));
    startKey = page.at(-1)?.toHex();
  } while (pages.at(-1).length === 5);
  const [first] = await relay.query.system.account.entriesPaged({ args: [], pageSize: 1 });
  return { pages, first_account: first[0].args[0].toString(), first_free: first[1].data.free.toBigInt() };
});

await item("storage subscription", async () => ({
  numbers: (await collect(4, (take) => relay.query.system.number(take))).map((number) => number.toNumber()),
}));

await item("head subscription", async () => ({
  heads: (await collect(4, (take) => relay.rpc.chain.subscribeNewHeads(take))).map((head) => ({
    number: head.number.toNumber(),
    hash: head.hash.toHex(),
    parent: head.parentHash.toHex(),
  })),
  finalized: (await collect(3, (take) => relay.rpc.chain.subscribeFinalizedHeads(take))).map((head) => head.number.toNumber()),
}));

await item("block", async () => {
  const names = ({ block }) => block.extrinsics.map(({ method }) => `${capital(method.section)}.${method.method}`);
  const inner = await reader.rpc.chain.getBlock();
  const given = inner.block.extrinsics.find(({ method }) => method.method === "setValidationData");
  const { validationData, relayChainState } = given.method.args[0];
  return {
    relay: names(await relay.rpc.chain.getBlock()),
    parachain: names(inner),
    relay_parent_number: validationData.relayParentNumber.toNumber(),
    relay_parent_storage_root: validationData.relayParentStorageRoot.toHex(),
    nodes: [...relayChainState.trieNodes].map((node) => hex(node.toU8a(true))),
  };
});

await item("child storage", async () => {
  const at = await relay.rpc.chain.getBlockHash();
  const child = childKey(PUBLISHER);
  const keys = await relay.rpc.childstate.getKeys(child, "0x", at);
  const paged = await relay.rpc.childstate.getKeysPaged(child, "0x", 7, keys[6].toHex(), at);
  const value = await relay.rpc.childstate.getStorage(child, keys[0], at);
  return {
    at: at.toHex(),
    keys: keys.map((key) => key.toHex()),
    second_page: paged.map((key) => key.toHex()),
    value: value.unwrap().toHex(),
    size: (await relay.rpc.childstate.getStorageSize(child, keys[0], at)).unwrap().toNumber(),
    hash: (await relay.rpc.childstate.getStorageHash(child, keys[0], at)).unwrap().toHex(),
  };
});

await item("child proof", async () => {
  const at = await relay.rpc.chain.getBlockHash();
  const child = childKey(PUBLISHER);
  const [key] = await relay.rpc.childstate.getKeys(child, "0x", at);
  const proof = await relay.rpc.state.getChildReadProof(child, [key], at);
  const top = await relay.rpc.state.getReadProof([child], at);
  return {
    at: at.toHex(),
    proved_at: proof.at.toHex(),
    state_root: (await relay.rpc.chain.getHeader(at)).stateRoot.toHex(),
    child_key: child,
    key: key.toHex(),
    value: (await relay.rpc.childstate.getStorage(child, key, at)).unwrap().toHex(),
    nodes: proof.proof.map((node) => node.toHex()),
    top_nodes: top.proof.map((node) => node.toHex()),
  };
});

await item("transfer", async () => {
  const fresh = keyring.addFromUri("//polkadot-js");
  const call = relay.tx.balances.transferKeepAlive(fresh.address, 5n * DOT);
  const before = await relay.query.system.account(alice.address);
  const predicted = (await call.paymentInfo(alice)).partialFee.toBigInt();
  const { block, result } = await send(relay, call, alice);
  const [after, there] = await relay.query.system.account.multi([alice.address, fresh.address]);
  return {
    block,
    amount: 5n * DOT,
    events: result.events.map(shown),
    before: before.data.free.toBigInt(),
    after: after.data.free.toBigInt(),
    nonces: [before.nonce.toNumber(), after.nonce.toNumber()],
    received: there.data.free.toBigInt(),
    predicted_fee: predicted,
  };
});

await item("other signatures", async () => {
  const events = {};
  for (const type of ["ed25519", "ecdsa"]) {
    const other = new Keyring({ type }).addFromUri("//Alice//other");
    await send(relay, relay.tx.balances.transferKeepAlive(other.address, 3n * DOT), alice);
    const { result } = await send(relay, relay.tx.balances.transferKeepAlive(alice.address, DOT), other);
    events[type] = result.events.map(shown);
  }
  return { events };
});

await item("register", async () => {
  const { result } = await send(relay, relay.tx.broadcaster.registerPublisher(NEWCOMER), bob);
  const info = (await relay.query.broadcaster.registeredPublishers(NEWCOMER)).unwrap();
  return {
    events: result.events.map(shown),
    manager: info.manager.toString(),
    deposit: info.deposit.toBigInt(),
    constant: relay.consts.broadcaster.publisherDeposit.toBigInt(),
    reserved: (await relay.query.system.account(bob.address)).data.reserved.toBigInt(),
  };
});

await item("failing call", async () => {
  const before = await relay.query.system.account(bob.address);
  const { result } = await send(relay, relay.tx.broadcaster.registerPublisher(NEWCOMER), bob);
  const after = await relay.query.system.account(bob.address);
  const found = relay.registry.findMetaError(result.dispatchError.asModule);
  return {
    events: result.events.map(shown),
    name: `${capital(found.section)}.${found.name}`,
    docs: found.docs.join(" "),
    paid: before.data.free.toBigInt() - after.data.free.toBigInt(),
    nonces: [before.nonce.toNumber(), after.nonce.toNumber()],
  };
});

await item("subscribe", async () => {
  const { result } = await send(reader, reader.tx.sudo.sudo(reader.tx.subscriber.subscribe(NEWCOMER, [KEY])), alice);
  return { events: result.events.map(shown) };
});

await item("publish", async () => {
  const value = "0x" + "ab".repeat(21);
  const told = eventually(relay, ({ name, fields }) => name === "Broadcaster.DataPublished" && fields.publisher === NEWCOMER);
  const { result } = await send(newcomer, newcomer.tx.publisher.publish([[KEY, value, 100]]), alice);
  const { event, block } = await told;
  const entry = await relay.rpc.childstate.getStorage(childKey(NEWCOMER), KEY, block);
  return { events: result.events.map(shown), told: event, key: KEY, value, ttl: 100, entry: entry.unwrap().toHex() };
});

await item("callback", async () => {
  const told = eventually(reader, ({ name, fields }) => name === "Subscriber.DataProcessed" && fields.valueSize === 40);
  await send(newcomer, newcomer.tx.publisher.publish([[KEY, "0x" + "cd".repeat(40), 0]]), alice);
  return { key: KEY, told: (await told).event };
});

await item("nonces", async () => {
  const remark = (text) => relay.tx.system.remarkWithEvent(text);
  const nonce = (await relay.rpc.system.accountNextIndex(charlie.address)).toNumber();
  const later = send(relay, remark("later"), charlie, { nonce: nonce + 1 });
  await pause(1_200);
  const waiting = (await relay.rpc.author.pendingExtrinsics()).length;
  const [first, second] = await Promise.all([send(relay, remark("sooner"), charlie, { nonce }), later]);
  const stale = await refusal(() => send(relay, remark("stale"), charlie, { nonce }));
  return {
    waiting,
    blocks: [first.block, second.block],
    nonces: [nonce, (await relay.rpc.system.accountNextIndex(charlie.address)).toNumber()],
    stale: { code: stale.code, message: stale.message, data: stale.data },
  };
});

await item("mortality", async () => {
  const call = relay.tx.system.remark("mortal");
  let head = await relay.rpc.chain.getHeader();
  const mortal = await send(relay, call, dave, { era: 16 });
  const immortal = await send(relay, call, dave, { era: 0 });
  while (head.number.toNumber() < 12) {
    await pause(500);
    head = await relay.rpc.chain.getHeader();
  }
  const born = head.number.toNumber() - 8;
  const expired = await refusal(async () => {
    const era = relay.registry.createType("ExtrinsicEra", { current: born, period: 4 });
    await send(relay, call, dave, { era, blockHash: await relay.rpc.chain.getBlockHash(born) });
  });
  return {
    blocks: [mortal.block, immortal.block],
    eras: (await Promise.all([mortal, immortal].map(({ block }) => relay.rpc.chain.getBlock(block)))).map(
      ({ block }) => block.extrinsics.find(({ isSigned }) => isSigned).era.toHuman(),
    ),
    expired: { code: expired.code, message: expired.message, data: expired.data },
  };
});

await item("bad signature", async () => {
  const signed = await relay.tx.system.remark("forged").signAsync(dave);
  const bytes = signed.toU8a();
  bytes[60] ^= 1;
  const forged = await refusal(() => relay.rpc.author.submitExtrinsic(hex(bytes)));
  return { code: forged.code, message: forged.message, data: forged.data };
});

await item("sudo", async () => {
  const call = relay.tx.broadcaster.forceDeregisterPublisher(NEWCOMER);
  const { result } = await send(relay, relay.tx.sudo.sudo(call), alice);
  const refused = await send(relay, relay.tx.sudo.sudo(call), bob);
  return {
    events: result.events.map(shown),
    left: (await relay.query.broadcaster.registeredPublishers(NEWCOMER)).isSome,
    refused: refused.result.events.map(shown),
  };
});

await item("fork", async () => {
  const ask = (method, ...params) => relay._rpcCore.provider.send(method, params);
  await ask("dev_setBlockTime", "manual");
  try {
    const parent = (await relay.rpc.chain.getBlockHash()).toHex();
    const [statuses, blocks] = [[], []];
    await relay.tx.system.remark(MARKER).signAndSend(dave, ({ status }) => {
      statuses.push(status.type);
      if (status.isInBlock) blocks.push(status.asInBlock.toHex());
    });
    const until = async (done) => {
      while (!done()) await pause(20);
    };
    const first = await ask("dev_newBlock");
    await until(() => blocks.length === 1);
    await ask("dev_setHead", parent);
    await until(() => statuses.includes("Retracted"));
    await ask("dev_setStorage", [[MARKER, "0x01"]]);
    const second = await ask("dev_newBlock");
    await until(() => blocks.length === 2);
    await ask("dev_newBlock", 2);
    await until(() => statuses.includes("Finalized"));
    const markers = await Promise.all([first, second].map((at) => relay.rpc.state.getStorage(MARKER, at)));
    return { first, second, blocks, markers: markers.map((it) => (it.isSome ? it.unwrap().toHex(true) : null)) };
  } finally {
    await ask("dev_setBlockTime", "500ms");
  }
});

await item("reconnection", async () => {
  const api = await connect(cuttable);
  const numbers = [];
  await api.rpc.chain.subscribeNewHeads((head) => numbers.push(head.number.toNumber()));
  const more = async (count) => {
    while (numbers.length < count) await pause(50);
  };
  await more(2);
  const gone = new Promise((resolve) => api.once("disconnected", resolve));
  askForACut();
  await gone;
  const before = numbers.length;
  await more(before + 3);
  const number = (await api.query.system.number()).toNumber();
  await api.disconnect();
  return { before: numbers.slice(0, before), after: numbers.slice(before), number };
});

await item("restart", async () => {
  const look = async () => ({
    genesis: (await relay.rpc.chain.getBlockHash(0)).toHex(),
    nonce: (await relay.rpc.system.accountNextIndex(charlie.address)).toNumber(),
  });
  const change = async () => (await send(relay, relay.tx.system.remark(MARKER), charlie)).block;
  const blocks = [await change()];
  const seen = [await look()];
  const back = new Promise((resolve) => relay.once("disconnected", () => relay.once("connected", resolve)));
  await askForARestart();
  await back;
  seen.push(await look());
  blocks.push(await change());
  seen.push(await look());
  return { seen, blocks };
});

await Promise.all([relay, newcomer, reader].map((api) => api.disconnect()));
