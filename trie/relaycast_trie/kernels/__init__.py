"""Every compiled loop: arrays and integers in and out, no objects, no exceptions. Users never import them.

``memory`` moves bytes, ``blake2b`` hashes many messages at once, ``tables`` says how a trie lies in arrays,
``announce`` why the first run waits. On these stand ``sort``, ``build``, ``encode``, ``get``, ``slots``, ``update``,
``decode``, ``vectors``, ``verify`` and ``compact``. Callers validate and allocate; a kernel that meets something it
cannot do answers with a number.
"""
