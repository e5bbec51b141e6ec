// What the npm clients' scripts of steps share: a line of JSON asks for a step, [NAME, ...VALUES], a line answers it.

import { createInterface } from "node:readline";
import { tell } from "./items.mjs";

const SECONDS = 60;

// Does the steps that are asked for, one after another, until there is nothing more to read.
export async function doSteps(steps) {
  tell({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...values] = JSON.parse(line);
    let timer;
    const late = new Promise((_, refuse) => {
      timer = setTimeout(() => refuse(new Error(`no end after ${SECONDS} s`)), SECONDS * 1_000);
    });
    try {
      tell({ found: (await Promise.race([steps[name](...values), late])) ?? null });
    } catch (error) {
      tell({ error: String(error?.stack ?? error) });
    } finally {
      clearTimeout(timer);
    }
  }
}
