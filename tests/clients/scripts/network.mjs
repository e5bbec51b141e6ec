// The parachains of the served scenario, and what each is there for; and a storage key that one branch of a fork has.

export const MARKER = "0x666f726b";

// It publishes from block 1 on.
export const PUBLISHER = 2000;

// It reads every key of PUBLISHER.
export const READER = 3000;

// It is no publisher until somebody registers it.
export const NEWCOMER = 3001;
