"""RFC-0160, publish-subscribe over the relay chain, as a program to be read.

Parachains publish values under keys of 32 bytes; the relay chain keeps them in one child trie for each publisher. A
parachain that subscribes learns of changed values from storage proofs in its own blocks. The chapters follow one
``Publish`` from its bytes to the callback, and nothing else needs to be open beside them:

1. ``scale``: bytes, hashes, and where a chain's state keeps its items
2. ``tries``: Merkle tries, storage proofs, compact proofs
3. ``xcm``: the message that carries a ``Publish``, the barrier that lets it in, the executor that runs it
4. ``broadcaster``: the relay chain's pallet: registration, limits, times to live, deletion
5. ``walk``: what changed for one key between two tries
6. ``proof_pass``: one pass over all subscribed keys within a budget
7. ``subscriber``: the parachain's block: prune, verify, apply, call back
8. ``messages``: what messages leave of a block

``vectors`` runs the conformance vectors through the chapters: ``python -m relaycast_spec.vectors DIR``.

Law: the standard library only, and one rule for each function. ``DECISION`` marks a line where RFC-0160 or the public
drafts are silent or contradict each other, with the name of the policy where there is a choice. ``Scenario`` names a
scenario of the specification beside the rule that makes it true.
"""
