"""How fast real runtimes run: compiling, loading, calls, and blocks, beside smoldot's executor in the same run.

::

    python benches/bench_wasm.py [--chains westend kusama] [--blocks 20] [--transfers 100] [--json FILE]

Needs the genesis states that tests have, and for the other host what ``.ci/peers`` installs; without it its figures are
left out. Both hosts build each block in turn. For the other host, one task is timed: it initializes the block, applies
the same extrinsics and finalizes it. For this one, all of it is timed, including inherents, the root and the proof.
What happens once in a process is the best of five; of the rest the median stands. Where the machine has other work,
compare CPU time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("trie", "xcm", "pallets", "collator", "ledger", "node", "wasm", "app", "tests")
sys.path[:0] = [str(ROOT / room) for room in ROOMS]

import pytest  # noqa: E402 - the rooms are put on the path above

from relaycast_collator.header import DigestItem, Header  # noqa: E402
from relaycast_wasm import WasmRuntime  # noqa: E402
from relaycast_wasm.chain import BuiltBlock  # noqa: E402
from relaycast_wasm.runtime import empty_overlay  # noqa: E402
from wasm.other_host import Answer, OtherHost, other_host  # noqa: E402
from wasm.real_chains import ALICE, BOB, CODE, digest_of, next_block, relay, top_of, writer  # noqa: E402

FIRST_CALL = """
import sys, time
from pathlib import Path
from relaycast_wasm import WasmRuntime
from relaycast_wasm.runtime import empty_overlay
code, overlay = Path(sys.argv[1]).read_bytes(), empty_overlay()
began = time.perf_counter()
runtime = WasmRuntime.load(code, Path(sys.argv[2]))
loaded = time.perf_counter()
runtime.call("Core_version", b"", overlay)
print(1e3 * (loaded - began), 1e3 * (time.perf_counter() - began))
"""
LOADS, CALLS = 5, 200

Figures = dict[str, float]


def loading(chain: str) -> Figures:
    """Return what a process waits for: the first that ever loads this code, and later ones."""
    with tempfile.TemporaryDirectory() as folder:
        code, kept = Path(folder) / "code", Path(folder) / "kept"
        code.write_bytes(top_of(chain)[CODE])
        command = [sys.executable, "-c", FIRST_CALL, str(code), str(kept)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        runs = []
        for _ in range(1 + LOADS):
            ended = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            runs.append([float(it) for it in ended.stdout.split()])
        kept_mb = sum(it.stat().st_size for it in kept.iterdir()) / 1e6
    return {
        "compile and keep, ms": runs[0][0],
        "load what is kept, ms": min(it[0] for it in runs[1:]),
        "load what is kept, first answer, ms": min(it[1] for it in runs[1:]),
        "kept on disk, MB": kept_mb,
    }


def calling(chain: str) -> Figures:
    """Return what a call takes that does next to nothing."""
    runtime, overlay = WasmRuntime.load(top_of(chain)[CODE]), empty_overlay()
    return {"call of Core_version, ms": median(_ms(lambda: runtime.call("Core_version", b"", overlay), CALLS))}


def building(chain_name: str, blocks: int, transfers: int, other: OtherHost | None) -> Figures:
    """Return what blocks take, empty but for inherents and with ``transfers``, by this host and the other."""
    chain = relay(chain_name)
    tx = writer(chain, chain.head.hash)
    if other is not None:
        other.set_up(top_of(chain_name)[CODE], top_of(chain_name))
    figures = Figures()
    moves = chain.runtime.version.spec_name == "westend"  # on Kusama of 2019 nobody may transfer yet
    for what, count in (("inherents alone", 0), (f"{transfers} {'transfers' if moves else 'remarks'}", transfers)):
        ours, theirs, ours_cpu, theirs_cpu = [], [], [], []
        for _ in range(blocks):
            first = chain.account_nonce(ALICE.public)
            call = tx.transfer(BOB.public, 10**10) if moves else tx.remark(b"good")
            extrinsics = [tx.sign(call, ALICE, nonce=first + number) for number in range(count)]
            parent, digest = chain.head, digest_of(chain)
            began, used = time.perf_counter(), time.process_time()
            block = next_block(chain, extrinsics)
            ours.append(1e3 * (time.perf_counter() - began))
            ours_cpu.append(1e3 * (time.process_time() - used))
            assert len(block.results) >= count, block.refused[:1]
            if other is not None:
                answer = there(other, parent, digest, block)
                theirs.append(answer.milliseconds)
                theirs_cpu.append(answer.cpu_milliseconds)
        figures[f"block of {what}, ms"] = median(ours)
        figures[f"block of {what}, ms of CPU"] = median(ours_cpu)
        if theirs:
            figures[f"block of {what}, other host, ms"] = median(theirs)
            figures[f"block of {what}, other host, ms of CPU"] = median(theirs_cpu)
            figures[f"block of {what}, times faster"] = median(theirs) / median(ours)
            figures[f"block of {what}, times less CPU"] = median(theirs_cpu) / median(ours_cpu)
    return figures


def there(other: OtherHost, parent: Header, digest: DigestItem, block: BuiltBlock) -> Answer:
    """Let the other host build the block too, in one task; return its answer."""
    header = Header(parent.hash, parent.number + 1, bytes(32), bytes(32), (digest,))
    calls = [("Core_initialize_block", header.encode())]
    calls += [("BlockBuilder_apply_extrinsic", it) for it in block.extrinsics]
    answer = other.call_all([*calls, ("BlockBuilder_finalize_block", b"")])
    other.keep()
    assert Header.decode(answer.result).extrinsics_root == block.header.extrinsics_root
    return answer


def _ms(act: Callable[[], object], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        taken.append(1e3 * (time.perf_counter() - began))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--chains", nargs="+", default=["westend", "kusama"], choices=["westend", "kusama"])
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--transfers", type=int, default=100)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sheet: dict[str, Figures] = {}
    with ExitStack() as stack:
        other: OtherHost | None = None
        try:
            other = stack.enter_context(other_host())
        except pytest.skip.Exception as reason:
            print(f"the other host is left out: {reason}", file=sys.stderr)
        for chain in given.chains:
            sheet[chain] = loading(chain) | calling(chain) | building(chain, given.blocks, given.transfers, other)
            print(chain)
            for name, value in sheet[chain].items():
                print(f"  {name:<48}{value:>10,.2f}")
    if given.json is not None:
        given.json.write_text(json.dumps(sheet, indent=1) + "\n")


if __name__ == "__main__":
    main()
