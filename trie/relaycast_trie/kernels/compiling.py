"""How functions become kernels: what each decorator lets numba compile, and who may call it."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import config as numba_config
from numba import njit as numba_njit

from relaycast_trie.kernels import announce as announce  # noqa: PLC0414 - starts to listen before anything is compiled
from relaycast_trie.kernels.keeping import keep
from relaycast_trie.kernels.standing import call_through, let_stand

njit: Any = numba_njit
config: Any = numba_config

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
        let_stand(dispatcher)
        if options.get("no_cpython_wrapper"):
            call_through(dispatcher, lambda: _face_of(dispatcher))
    keep(dispatcher)
    return cast(Kernel, dispatcher)


def _face_of(dispatcher: Any) -> Any:
    """Compile what hands over to a kernel all that Python gives it."""

    def call(*arguments: Any) -> Any:
        return dispatcher(*arguments)

    made = njit(nogil=True, no_cfunc_wrapper=True, _nrt=False)(call)
    keep(made, name=f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__name__}")
    return made
