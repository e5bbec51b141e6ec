// Uses a chain of a real runtime as somebody with polkadot-api does: node real_runtime_papi.mjs URL
// It asks for no fees: of a runtime as old as this one polkadot-api cannot read them.

import { Keyring } from "@polkadot/keyring";
import { cryptoWaitReady } from "@polkadot/util-crypto";
import { createClient } from "polkadot-api";
import { getPolkadotSigner } from "polkadot-api/signer";
import { getWsProvider } from "polkadot-api/ws";
import { WebSocket } from "ws";
import { hex, item } from "./items.mjs";

const [url] = process.argv.slice(2);
const client = createClient(getWsProvider(url, { websocketClass: WebSocket }));
const api = client.getUnsafeApi();
await cryptoWaitReady();
const keyring = new Keyring({ type: "sr25519" });
const [alice, dave] = ["//Alice", "//Dave"].map((uri) => keyring.addFromUri(uri));
const signer = getPolkadotSigner(alice.publicKey, "Sr25519", (input) => alice.sign(input));
const UNIT = 10n ** 12n;

await item("metadata", async () => {
  const { hash } = await client.getFinalizedBlock();
  return { bytes: hex(await client.getMetadata(hash)), version: (await api.constants.System.Version()).spec_version };
});

await item("transfer", async () => {
  const call = api.tx.Balances.transfer_keep_alive({ dest: { type: "Id", value: dave.address }, value: 3n * UNIT });
  const ended = await call.signAndSubmit(signer);
  const account = await api.query.System.Account.getValue(dave.address);
  return { ok: ended.ok, events: ended.events.map(({ type, value }) => `${type}.${value.type}`), free: account.data.free };
});

client.destroy();
