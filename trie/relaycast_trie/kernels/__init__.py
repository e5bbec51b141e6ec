"""Every compiled loop: arrays and integers in and out, no exceptions. Users never import them.

``compiling`` makes kernels of functions, ``disk_cache`` keeps their code and says why the first run waits. ``memory``
moves bytes, ``multibuffer_hash`` hashes many messages at once. ``tables`` says how a trie lies in arrays,
``packed_args`` how these come to a kernel: ``build``, ``encode``, ``get``, ``update`` and ``settle`` work on them.
``decode``, ``verify`` and ``compact`` read proofs, ``side_by_side`` reads two tries at once. ``python_lists`` takes
strings out of Python lists and into them; no other kernel looks at Python objects but ``at_once``, which stands on
all. Callers validate and allocate; a kernel that meets something it cannot do answers with a number.
"""
