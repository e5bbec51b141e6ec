"""Every compiled loop: arrays and integers in and out, no objects, no exceptions. Users never import them.

``memory`` moves bytes, ``blake2b`` hashes many messages at once, ``tables`` says how a trie lies in arrays. On these
stand ``build``, ``encode``, ``get``, ``update``, ``decode``, ``verify`` and ``compact``. Callers validate and allocate; a kernel
that meets something it cannot do answers with a number.

Numba keeps compiled code per source file: whoever edits a kernel empties ``__pycache__``, since a kernel that was
compiled into another one is not noticed.
"""
