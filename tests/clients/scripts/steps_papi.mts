// Takes steps on a served relay chain with polkadot-api: node steps_papi.mjs URL

import { relay as relayChain } from "@polkadot-api/descriptors";
import { Keyring } from "@polkadot/keyring";
import { cryptoWaitReady } from "@polkadot/util-crypto";
import { createClient } from "polkadot-api";
import { getPolkadotSigner } from "polkadot-api/signer";
import { getWsProvider, WsEvent } from "polkadot-api/ws";
import { distinctUntilChanged, filter, firstValueFrom, map, take, toArray } from "rxjs";
import { WebSocket } from "ws";
import { pause } from "./items.mjs";
import { MARKER, PUBLISHER } from "./network.mjs";
import { legacyReadings } from "./papi_readings.mjs";
import { doSteps } from "./steps.mjs";

let status: WsEvent | undefined;
const websocketClass = WebSocket as unknown as typeof globalThis.WebSocket;
const onStatusChanged = ({ type }: { type: WsEvent }) => {
  status = type;
};
const client = createClient(getWsProvider(process.argv[2]!, { websocketClass, onStatusChanged }));
const relay = client.getTypedApi(relayChain);
const readings = legacyReadings(client);
await cryptoWaitReady();
const charlie = new Keyring({ type: "sr25519" }).addFromUri("//Charlie");
const signer = getPolkadotSigner(charlie.publicKey, "Sr25519", (input) => charlie.sign(input));
const newest = async () => (await client.getBestBlocks())[0]!.hash;

await doSteps({
  // Waits until the client has noticed that the server is a new process, and follows its blocks.
  again: async () => {
    while (status !== WsEvent.CONNECTED) await pause(20);
    await firstValueFrom(client.finalizedBlock$);
  },
  best: newest,
  send: () =>
    firstValueFrom(
      relay.tx.System.remark({ remark: new Uint8Array(4) }).signSubmitAndWatch(signer).pipe(
        map((it) => (it.type === "txBestBlocksState" && it.found ? it.block.hash : undefined)),
        filter((it) => it !== undefined),
      ),
    ),
  read: async (at: string) => {
    const [key] = await readings.childKeys(PUBLISHER, at);
    return {
      number: await relay.query.System.Number.getValue({ at }),
      parent: await relay.query.System.ParentHash.getValue({ at }),
      nonce: (await relay.query.System.Account.getValue(charlie.address, { at })).nonce,
      marker: await client.rawQuery(MARKER, { at }),
      published: await readings.childValue(PUBLISHER, key!, at),
    };
  },
  heads: (count: number) =>
    firstValueFrom(
      client.bestBlocks$.pipe(
        map(([best]) => best!),
        distinctUntilChanged((one, other) => one.hash === other.hash),
        map(({ number, parent }) => [number, parent]),
        take(count),
        toArray(),
      ),
    ),
});

client.destroy();
