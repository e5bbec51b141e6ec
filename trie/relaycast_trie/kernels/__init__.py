"""Every compiled loop: arrays and integers in and out, no exceptions. Users never import them.

``memory`` moves bytes, ``blake2b`` hashes in lanes, ``lanes`` brings messages there. ``tables`` says how a trie lies in
arrays, ``handover`` how these come to a kernel. ``compiling`` makes kernels of functions, ``disk_cache`` keeps their
code and says why the first run waits. ``gather`` and ``scatter`` take strings out of Python lists and into them; no
other kernel looks at Python objects but ``at_once``, which stands on all. The rest are ``sort``, ``build``, ``encode``,
``get``, ``slots``, ``update``, ``settle``, ``seal``, ``decode``, ``vectors``, ``verify``, ``distinct`` and ``compact``.
Callers validate and allocate; a kernel that meets something it cannot do answers with a number.
"""
