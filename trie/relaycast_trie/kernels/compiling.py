"""How functions become kernels: what each decorator lets numba compile, and who may call it.

Compiling all kernels takes 50 s of CPU time in two processes. It would take 20 s more if Python could call each of
them, and 10 s more if each were compiled for every constant that it is called with.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from numba import config as numba_config
from numba import njit as numba_njit
from numba import types as numba_types

from relaycast_trie.kernels.disk_cache import keep

njit: Any = numba_njit
config: Any = numba_config
types: Any = numba_types

JIT = not config.DISABLE_JIT

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` on its first call, without the interpreter's lock, and keep the code where that can be.

    Its arrays are borrowed from the caller: it counts no references, so it allocates nothing and returns no array. A
    cache folder that cannot be written or found costs a compilation per process, nothing else. Only kernels call it;
    where Python does, a face is made for it.
    """
    return _compiled(function, _nrt=False, no_cpython_wrapper=True)


def face(function: Kernel) -> Kernel:
    """Compile like ``kernel`` a function that Python calls, with the code that takes Python's objects apart."""
    return _compiled(function, _nrt=False)


def inlined(function: Kernel) -> Kernel:
    """Compile like ``kernel`` a part of kernels that becomes part of their code.

    Tables are many machine words; to hand them over in a call costs more than what a small part does.
    """
    return _compiled(function, _nrt=False, no_cpython_wrapper=True, forceinline=True)


def allocating_kernel(function: Kernel) -> Kernel:
    """Compile like ``face`` a function that allocates arrays: counting references makes its loops slow."""
    return _compiled(function)


def locked_kernel(function: Kernel) -> Kernel:
    """Compile like ``allocating_kernel`` a function that looks at Python objects: it keeps the interpreter's lock."""
    return _compiled(function, nogil=False)


def _compiled(function: Kernel, **options: bool) -> Kernel:
    dispatcher = njit(**{"nogil": True, "no_cfunc_wrapper": True, **options})(function)
    if JIT:
        dispatcher._compilation_chain_init_hook = _no_extensions
        _ignore_constants(dispatcher)
        if options.get("no_cpython_wrapper"):
            _call_through_face(dispatcher)
    keep(dispatcher)
    return cast(Kernel, dispatcher)


def _no_extensions() -> None:
    """Spare numba a look at every installed distribution: kernels take no type that another one brings."""


def _ignore_constants(dispatcher: Any) -> None:
    """Compile a kernel for the types of its arguments, not for each constant that a caller hands to it."""
    template_of = dispatcher.get_call_template

    def get_call_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return template_of(
            tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
        )

    dispatcher.get_call_template = get_call_template


def _call_through_face(dispatcher: Any) -> None:
    """Let Python call a kernel that cannot take Python's objects apart: through a face, compiled on the first call."""

    def call(*arguments: Any) -> Any:
        return dispatcher(*arguments)

    @cache
    def made() -> Any:
        made = njit(nogil=True, no_cfunc_wrapper=True, _nrt=False)(call)
        keep(made, name=f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__name__}")
        return made

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    dispatcher.add_overload = add_overload
    dispatcher._compile_for_args = lambda *_args, **_kws: made()
