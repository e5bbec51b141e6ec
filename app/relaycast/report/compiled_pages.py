"""Compiled templates, kept from one process to the next as Python keeps its modules.

Law: they stand where Python puts the compiled modules of this folder, and are written where it writes those. Whatever
is wrong with a file, or with writing it, costs a compilation and nothing else.
"""

import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache


class CompiledPages(BytecodeCache):
    """Keeps each template of this folder in one file; a template that was changed, or another Python, replaces it."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError), _file_of(bucket).open("rb") as stream:
            bucket.load_bytecode(stream)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        file = _file_of(bucket)
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(bucket.bytecode_to_string())
            unfinished.replace(file)


def _file_of(bucket: Bucket) -> Path:
    return Path(cache_from_source(str(Path(__file__).parent / "pages" / f"{bucket.key}.py")))
