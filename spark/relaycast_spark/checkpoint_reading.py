"""How checkpoints are read: pickle's own reader in Python, told what it may name, call and change.

Law: nothing is named but what a simulation is made of (``checkpoint_names.py``), whatever our modules import or our
objects lead to; nothing is called but classes; and nothing is changed that was there before, neither a class nor a
constant: pickle sets attributes of whatever it is given, and a class would keep what a forged checkpoint makes of it.
"""

import pickle
import sys
from collections.abc import Callable
from enum import Enum
from io import BytesIO
from typing import Any

from msgspec import Struct

from relaycast_spark.checkpoint_names import (
    FUNCTIONS,
    GETATTR,
    METHODS,
    OF_THE_FRONT_DOOR,
    PLAIN,
    REBUILD,
    Name,
    is_of_the_chain,
    makes_values,
)
from relaycast_spark.exceptions import CheckpointRefused

Step = Callable[[Any], None]
"""What an opcode does to the reader."""


class Unpickler(pickle._Unpickler):
    """Reads one checkpoint; raises ``CheckpointRefused`` for what none holds."""

    def __init__(self, stream: BytesIO) -> None:
        super().__init__(stream)
        self._makers: dict[int, object] = {}
        """What may be called, and what was there before: by identity, and held, so that nothing else takes that on."""
        self._shared: dict[int, object] = {}

    def persistent_load(self, name: Name) -> Any:
        """Return the constant of this name."""
        module, attribute = name
        if not is_of_the_chain(module):
            raise CheckpointRefused(f"a constant of {module}")
        found = getattr(sys.modules.get(module) or __import__(module, fromlist=[attribute]), attribute)
        if isinstance(found, type) or not is_of_the_chain(type(found).__module__):
            raise CheckpointRefused(f"{module}.{attribute}, which is no constant of ours")
        self._shared[id(found)] = found
        return found

    def find_class(self, module: str, name: str) -> Any:
        """Return the class or the function of this name."""
        found = self._named(module, name)
        self._shared[id(found)] = found
        if (module, name) not in FUNCTIONS:
            self._makers[id(found)] = found
        return found

    def _named(self, module: str, name: str) -> Any:
        if (module, name) == GETATTR:
            return _method_of
        if (module, name) == REBUILD:
            return _struct_of
        if (module, name) in PLAIN | OF_THE_FRONT_DOOR | FUNCTIONS:
            return super().find_class(module, name)
        if makes_values(module):
            found = super().find_class(module, name)
            if isinstance(found, type) and makes_values(found.__module__):
                return found
        raise CheckpointRefused(f"{module}.{name}")

    def check_call(self, function: object) -> None:
        """Raise ``CheckpointRefused`` unless calling this makes a value, and does nothing else."""
        if id(function) not in self._makers:
            raise CheckpointRefused(f"a call of {function!r:.80}")

    def check_change(self, thing: object) -> None:
        """Raise ``CheckpointRefused`` unless this was made from the checkpoint."""
        if id(thing) in self._shared or isinstance(thing, Enum):
            raise CheckpointRefused(f"a change of {thing!r:.80}")


def _method_of(owner: Any, name: str) -> Any:
    """Return a method of ours: how a bound method is put together again. Raises ``CheckpointRefused``."""
    kind = owner if isinstance(owner, type) else type(owner)
    if (kind.__module__, f"{kind.__qualname__}.{name}") not in METHODS:
        raise CheckpointRefused(f"{name} of {kind.__module__}.{kind.__qualname__}")
    return getattr(owner, name)


def _struct_of(kind: type[Struct], fields: dict[str, Any]) -> Struct:
    """Return a struct of ours; other classes may do anything with names that they are called with."""
    if not issubclass(kind, Struct):
        raise CheckpointRefused(f"{kind.__qualname__}, which is no struct")
    return kind(**fields)


def _calling(step: Step, below: int) -> Step:
    """Return a step that calls what lies so far ``below`` the top of the stack."""

    def checked(reader: Any) -> None:
        reader.check_call(reader.stack[-1 - below])
        step(reader)

    return checked


def _changing(step: Step, below: int | None) -> Step:
    """Return a step that changes what lies so far ``below`` the top of the stack, or below the mark: ``None``."""

    def checked(reader: Any) -> None:
        reader.check_change(reader.metastack[-1][-1] if below is None else reader.stack[-1 - below])
        step(reader)

    return checked


STEPS: dict[int, Step] = pickle._Unpickler.dispatch.copy()
for code, below in ((pickle.REDUCE, 1), (pickle.NEWOBJ, 1), (pickle.NEWOBJ_EX, 2)):
    STEPS[code[0]] = _calling(STEPS[code[0]], below)
for code, beneath in (
    (pickle.BUILD, 1),
    (pickle.APPEND, 1),
    (pickle.SETITEM, 2),
    (pickle.APPENDS, None),
    (pickle.SETITEMS, None),
    (pickle.ADDITEMS, None),
):
    STEPS[code[0]] = _changing(STEPS[code[0]], beneath)
for code in (pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4):
    del STEPS[code[0]]  # other ways to call and to name; no checkpoint takes them

Unpickler.dispatch = STEPS
