// What the scripts of the npm clients share: an item is done and told on one line of JSON.

const SECONDS = 60;

export function tell(said) {
  console.log(JSON.stringify(said, (_, value) => (typeof value === "bigint" ? value.toString() : value)));
}

// Does one item and tells what it saw; an item that fails, or takes too long, does not keep the others from their turn.
export async function item(name, work) {
  let timer;
  const late = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Error(`no end after ${SECONDS} s`)), SECONDS * 1_000);
  });
  try {
    tell({ item: name, ...(await Promise.race([work(), late])) });
  } catch (error) {
    tell({ item: name, error: String(error?.stack ?? error) });
  } finally {
    clearTimeout(timer);
  }
}

// Asks for the connections through the cuttable line to be cut.
export function askForACut() {
  tell({ ask: "cut" });
}

// Asks for the server to be killed and started again, and waits until it is there: it answers with a line.
export async function askForARestart() {
  tell({ ask: "restart" });
  await new Promise((resume) => process.stdin.once("data", resume));
  process.stdin.destroy();
}

// Returns what `work` is refused with.
export async function refusal(work) {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was refused");
}

// Returns the hash of a transaction's block by polkadot.js' status, null where it is in none. A client that is slow to
// read its block is told of it when it is final: a later status takes the place of one that is still being read.
export function blockOf(status) {
  if (status.isInBlock) return status.asInBlock.toHex();
  return status.isFinalized ? status.asFinalized.toHex() : null;
}

export function hex(bytes) {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}

// The storage key of a publisher's child trie: (b"pubsub", para_id) in SCALE behind the prefix of child storage.
export function childKey(paraId) {
  const id = Buffer.alloc(4);
  id.writeUInt32LE(paraId);
  return hex(Buffer.concat([Buffer.from(":child_storage:default:pubsub"), id]));
}

export function pause(milliseconds) {
  return new Promise((resume) => setTimeout(resume, milliseconds));
}
