// What polkadot-api has no typed call for: asked with the legacy methods, or over the interface that succeeds them.

import { createClient } from "@polkadot-api/substrate-client";
import type { PolkadotClient } from "polkadot-api";
import type { WsJsonRpcProvider } from "polkadot-api/ws";
import { lastValueFrom, map, take, takeWhile, toArray } from "rxjs";
import { childKey, hex } from "./items.mjs";
import { READER } from "./network.mjs";

export interface Readings {
  chain(): Promise<string>;
  // All keys with a prefix at the best block, some at a time.
  pagesOfKeys(prefix: string, size: number): Promise<string[][]>;
  childKeys(publisher: number, at: string): Promise<string[]>;
  childKeysAfter(publisher: number, size: number, after: string, at: string): Promise<string[]>;
  childValue(publisher: number, key: string, at: string): Promise<string>;
  childSize(publisher: number, key: string, at: string): Promise<number>;
  childHash(publisher: number, key: string, at: string): Promise<string>;
  childProof(publisher: number): Promise<ChildProof>;
  nextNonce(address: string, account: Uint8Array): Promise<number>;
}

// `nodes` prove `key` of a child trie under a block's state root, `topNodes` the child trie's root alone.
export interface ChildProof {
  at: string;
  provedAt: string;
  key: string;
  nodes: string[];
  topNodes: string[];
}

type Page = (after: string | undefined) => Promise<string[]>;

const pages = async (size: number, page: Page) => {
  const found: string[][] = [];
  do found.push(await page(found.at(-1)?.at(-1)));
  while (found.at(-1)?.length === size);
  return found;
};

export function legacyReadings(client: PolkadotClient): Readings {
  const ask = (method: string, ...params: unknown[]) => client._request(method, params);
  const childKeys = (publisher: number, at: string) => ask("childstate_getKeys", childKey(publisher), "0x", at);
  return {
    chain: () => ask("system_chain"),
    pagesOfKeys: (prefix, size) =>
      pages(size, (after) => ask("state_getKeysPaged", prefix, size, ...(after ? [after] : []))),
    childKeys,
    childKeysAfter: (publisher, size, after, at) =>
      ask("childstate_getKeysPaged", childKey(publisher), "0x", size, after, at),
    childValue: (publisher, key, at) => ask("childstate_getStorage", childKey(publisher), key, at),
    childSize: (publisher, key, at) => ask("childstate_getStorageSize", childKey(publisher), key, at),
    childHash: (publisher, key, at) => ask("childstate_getStorageHash", childKey(publisher), key, at),
    childProof: async (publisher) => {
      const { hash: at } = await client.getFinalizedBlock();
      const [key] = await childKeys(publisher, at);
      const proof = await ask("state_getChildReadProof", childKey(publisher), [key], at);
      const top = await ask("state_getReadProof", [childKey(publisher)], at);
      return { at, provedAt: proof.at, key, nodes: proof.proof, topNodes: top.proof };
    },
    nextNonce: (address) => ask("system_accountNextIndex", address),
  };
}

// The new interface names a child trie without the prefix of child storage.
const PREFIX = Buffer.from(":child_storage:default:").length;
const bareChildKey = (publisher: number) => `0x${childKey(publisher).slice(2 + 2 * PREFIX)}`;

type ChainHead = ReturnType<ReturnType<typeof createClient>["chainHead"]>;

// It has no method for read proofs: `dev_proof` shows the relay proof that the newest block of READER came with.
export function newReadings(client: PolkadotClient, provider: () => WsJsonRpcProvider): Readings {
  // Follows the chain anew until `work` is done with one of its blocks.
  const atPinned = <T,>(at: string, work: (head: ChainHead) => Promise<T>): Promise<T> => {
    const lower = createClient(provider());
    return new Promise<T>((resolve, reject) => {
      const begin = (hashes: string[]) => hashes.includes(at) && void work(head).then(resolve, reject);
      const head = lower.chainHead(
        true,
        (event) => {
          if (event.type === "initialized") begin(event.finalizedBlockHashes);
          if (event.type === "newBlock") begin([event.blockHash]);
        },
        reject,
      );
    }).finally(() => lower.destroy());
  };
  const archived = (at: string, query: object, child: string | null, most: number): Promise<string[]> =>
    lastValueFrom(
      client._subscribe("archive_v1_storage", "archive_v1_stopStorage", [at, [query], child]).pipe(
        takeWhile(({ event }) => event === "storage"),
        map(({ key }): string => key),
        take(most),
        toArray(),
      ),
    );
  const below = (key: string, after: string | undefined) => ({ key, type: "descendantsHashes", paginationStartKey: after });
  const childValue = (publisher: number, key: string, at: string) =>
    atPinned(at, async (head) => (await head.storage(at, "value", key, bareChildKey(publisher)))!);
  const childKeys = (publisher: number, at: string) =>
    atPinned(at, async (head) =>
      (await head.storage(at, "descendantsHashes", "0x", bareChildKey(publisher))).map(({ key }) => key),
    );
  return {
    chain: async () => (await client.getChainSpecData()).name,
    pagesOfKeys: async (prefix, size) => {
      const { hash } = (await client.getBestBlocks())[0]!;
      return pages(size, (after) => archived(hash, below(prefix, after), null, size));
    },
    childKeys,
    childKeysAfter: (publisher, size, after, at) => archived(at, below("0x", after), bareChildKey(publisher), size),
    childValue,
    childSize: async (publisher, key, at) => (await childValue(publisher, key, at)).length / 2 - 1,
    childHash: (publisher, key, at) =>
      atPinned(at, async (head) => (await head.storage(at, "hash", key, bareChildKey(publisher)))!),
    childProof: async (publisher) => {
      const { relayParent, full } = await client._request("dev_proof", [null, READER]);
      const [key] = await archived(relayParent.hash, below("0x", undefined), bareChildKey(publisher), 1);
      return { at: relayParent.hash, provedAt: relayParent.hash, key: key!, nodes: full.nodes, topNodes: full.nodes };
    },
    nextNonce: async (_, account) => {
      const { hash } = (await client.getBestBlocks())[0]!;
      const encoded = await atPinned(hash, (head) => head.call(hash, "AccountNonceApi_account_nonce", hex(account)));
      return Buffer.from(encoded.slice(2), "hex").readUInt32LE();
    },
  };
}
