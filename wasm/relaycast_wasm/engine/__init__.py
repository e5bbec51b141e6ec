"""How WebAssembly is run: the engine, instances, their memory, callbacks to the host, and limits."""
