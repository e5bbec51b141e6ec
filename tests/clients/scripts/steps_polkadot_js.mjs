// Takes steps on a served relay chain with @polkadot/api: node steps_polkadot_js.mjs URL

import { ApiPromise, Keyring, WsProvider } from "@polkadot/api";
import { blockOf, childKey, pause } from "./items.mjs";
import { MARKER, PUBLISHER } from "./network.mjs";
import { doSteps } from "./steps.mjs";

const relay = await ApiPromise.create({ provider: new WsProvider(process.argv[2], 100), noInitWarn: true });
const charlie = new Keyring({ type: "sr25519" }).addFromUri("//Charlie");

await doSteps({
  // Waits until the client has noticed that the server is a new process.
  again: async () => {
    while (!relay.isConnected) await pause(20);
    await relay.rpc.system.chain();
  },
  best: async () => (await relay.rpc.chain.getBlockHash()).toHex(),
  send: () =>
    new Promise((resolve, reject) => {
      const ended = ({ isError, status }) => {
        if (isError) reject(new Error(status.toString()));
        const block = blockOf(status);
        if (block) resolve(block);
      };
      relay.tx.system.remark(MARKER).signAndSend(charlie, { nonce: -1 }, ended).catch(reject);
    }),
  read: async (at) => {
    const api = await relay.at(at);
    const [key] = await relay.rpc.childstate.getKeys(childKey(PUBLISHER), "0x", at);
    const marker = await relay.rpc.state.getStorage(MARKER, at);
    return {
      number: (await api.query.system.number()).toNumber(),
      parent: (await api.query.system.parentHash()).toHex(),
      nonce: (await api.query.system.account(charlie.address)).nonce.toNumber(),
      marker: marker.isSome ? marker.unwrap().toHex(true) : null,
      published: (await relay.rpc.childstate.getStorage(childKey(PUBLISHER), key, at)).unwrap().toHex(),
    };
  },
  heads: (count) =>
    new Promise((resolve, reject) => {
      const seen = [];
      const stop = relay.rpc.chain.subscribeNewHeads((head) => {
        seen.push([head.number.toNumber(), head.parentHash.toHex()]);
        if (seen.length === count) stop.then((unsubscribe) => unsubscribe()).then(() => resolve(seen), reject);
      });
      stop.catch(reject);
    }),
});

await relay.disconnect();
