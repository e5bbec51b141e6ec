"""Where the code of a kernel stands: that of a large one once in a process, however many kernels call it.

Numba gives the code of all that a kernel calls to LLVM with it. Of a small one that makes a part of the caller; of a
large one it makes one more copy, compiled anew for each caller. Law: a kernel of more than ``LARGEST_PART``
instructions is called at its address. The address has a name that is the same in every process, so that kept code
finds what it calls.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Any

from llvmlite import binding
from numba import types as numba_types

types: Any = numba_types

LARGEST_PART = 250
"""Instructions of LLVM, after optimisation."""

_kernels: dict[str, Any] = {}
"""Every kernel, by module and name."""

_standing: dict[str, partial[None]] = {}
"""What brings a kernel into a process, by the name of its address; those that stand in this one."""


def let_stand(dispatcher: Any) -> None:
    """Let kernels call a kernel at its address where it is large.

    It is compiled for integers, and not once more for each constant that is handed to it.
    """
    name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
    _kernels[name] = dispatcher
    plain_template, plain_add = dispatcher.get_call_template, dispatcher.add_overload

    def get_call_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        template = plain_template(
            tuple(map(types.unliteral, args)), {key: types.unliteral(kind) for key, kind in kws.items()}
        )
        result = dispatcher.overloads[tuple(template[2])]
        if _symbol(name, result) not in _standing and not _is_part(dispatcher, result):
            _stand_alone(name, result)
        return template

    def add_overload(result: Any) -> None:
        if dispatcher.targetoptions.get("no_cpython_wrapper"):
            dispatcher.overloads[tuple(result.signature.args)] = result  # for kernels, not for Python
        else:
            plain_add(result)

    dispatcher.get_call_template, dispatcher.add_overload = get_call_template, add_overload


def call_through(dispatcher: Any, make_face: Callable[[], Any]) -> None:
    """Let Python call a kernel that cannot take Python's objects apart: through a face, made when it does."""
    made = cache(make_face)
    dispatcher._compile_for_args = lambda *_args, **_kws: made()


def called_by(result: Any) -> Iterator[partial[None]]:
    """Yield what brings each kernel into a process that freshly compiled code calls at its address."""
    for function in result.library._final_module.functions:
        if function.is_declaration and function.name in _standing:
            yield _standing[function.name]


def _is_part(dispatcher: Any, result: Any) -> bool:
    if dispatcher.targetoptions.get("forceinline"):
        return True
    code = result.library._get_module_for_linking().get_function(result.fndesc.llvm_func_name)
    instructions = (1 for block in code.blocks for _ in block.instructions)
    return sum(islice(instructions, LARGEST_PART + 1)) <= LARGEST_PART


def _symbol(name: str, result: Any) -> str:
    arguments = str(tuple(result.signature.args)).encode()
    return f"{name}.{hashlib.blake2b(arguments, digest_size=8).hexdigest()}"


def _stand_alone(name: str, result: Any) -> None:
    """Give what was compiled a name of its own, by which callers find it without its code."""
    symbol = _symbol(name, result)
    binding.add_symbol(symbol, result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
    _standing[symbol] = partial(_bring, name, tuple(result.signature.args))
    described = copy.copy(result.fndesc)
    described.mangled_name = symbol
    context = result.target_context
    context.remove_user_function(result.entry_point)
    context.insert_user_function(result.entry_point, described, ())


def _bring(name: str, arguments: tuple[Any, ...]) -> None:
    """Load a kernel, or compile it where what was kept of it is gone, and give it its name."""
    dispatcher = _kernels[name]
    dispatcher.compile(arguments)
    result = dispatcher.overloads[arguments]
    if _symbol(name, result) not in _standing:
        _stand_alone(name, result)
