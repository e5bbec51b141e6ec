// Uses a chain of a real runtime as somebody with @polkadot/api does: node real_runtime.mjs URL

import { ApiPromise, Keyring, WsProvider } from "@polkadot/api";
import { blockOf, item, refusal } from "./items.mjs";

const [url] = process.argv.slice(2);
const api = await ApiPromise.create({ provider: new WsProvider(url, 200), noInitWarn: true });
const keyring = new Keyring({ type: "sr25519" });
const [alice, bob] = ["//Alice", "//Bob"].map((uri) => keyring.addFromUri(uri));
const [decimals] = api.registry.chainDecimals;
const UNIT = 10n ** BigInt(decimals);

const account = async ({ address }, at = api) => (await at.query.system.account(address)).toJSON();
const free = async (pair, at = api) => (await at.query.system.account(pair.address)).data.free.toBigInt();

// Sends a call and returns how it ended in its block.
const send = (call, signer) =>
  new Promise((resolve, reject) => {
    const ended = (result) => {
      if (result.isError) reject(new Error(result.status.toString()));
      const block = blockOf(result.status);
      if (block) resolve({ block, result });
    };
    call.signAndSend(signer, ended).catch(reject);
  });

const names = (events) => events.map(({ event }) => `${event.section}.${event.method}`);

await item("connect", async () => ({
  chain: (await api.rpc.system.chain()).toString(),
  genesis: api.genesisHash.toHex(),
  spec_name: api.runtimeVersion.specName.toString(),
  spec_version: api.runtimeVersion.specVersion.toNumber(),
  metadata_version: api.runtimeMetadata.version,
  token: api.registry.chainTokens[0],
}));

await item("storage", async () => {
  const head = await api.rpc.chain.getHeader();
  const at = await api.at(head.hash);
  const keys = await api.rpc.state.getKeysPaged(api.query.system.account.keyPrefix(), 10);
  return {
    number: (await at.query.system.number()).toNumber(),
    header_number: head.number.toNumber(),
    alice: await account(alice, at),
    accounts: keys.length,
    proof: (await api.rpc.state.getReadProof([api.query.system.account.key(alice.address)])).proof.length,
  };
});

await item("transfer", async () => {
  const call = api.tx.balances.transferKeepAlive(bob.address, 5n * UNIT);
  const fee = (await call.paymentInfo(alice)).partialFee.toBigInt();
  const { block, result } = await send(call, alice);
  const header = await api.rpc.chain.getHeader(block);
  const [before, after] = await Promise.all([header.parentHash, block].map((hash) => api.at(hash)));
  const { extrinsics } = (await api.rpc.chain.getBlock(block)).block;
  return {
    fee,
    events: names(result.events),
    body: extrinsics.map(({ method }) => `${method.section}.${method.method}`),
    signed: extrinsics.map(({ isSigned }) => isSigned),
    bob_got: (await free(bob, after)) - (await free(bob, before)),
    alice_gave: (await free(alice, before)) - (await free(alice, after)),
    unit: UNIT,
    nonce: (await api.rpc.system.accountNextIndex(alice.address)).toNumber(),
  };
});

await item("failed", async () => {
  const { result } = await send(api.tx.balances.transferKeepAlive(bob.address, 10n ** 30n), alice);
  const failed = result.events.find(({ event }) => event.method === "ExtrinsicFailed");
  const [error] = failed.event.data;
  return { events: names(result.events), reason: error.isModule ? api.registry.findMetaError(error.asModule).name : error.type };
});

await item("stale", async () => {
  const call = await api.tx.system.remark("0x00").signAsync(alice, { nonce: 0 });
  const refused = await refusal(() => api.rpc.author.submitExtrinsic(call));
  return { message: refused.message, dry: (await api.rpc.system.dryRun(call.toHex())).toHex() };
});

await api.disconnect();
