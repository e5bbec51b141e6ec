"""RFC-0160, publish-subscribe over the relay chain, as a program to be read.

Parachains publish values under keys of 32 bytes; the relay chain keeps them in one child trie for each publisher. A
parachain that subscribes learns of changed values from storage proofs in its own blocks.

The *relay chain* secures many *parachains*. A *collator* builds a parachain's blocks. Validators of the relay chain run
each block again from its bytes alone (the *PoV*), so the block must carry a proof of all that it reads. A *pallet* is a
module of a chain, with its own items of state. A *child trie* is a trie whose root is a value in the chain's main trie,
the *top trie*. *Governance* makes calls with the origin ``root``.

The chapters follow one ``Publish`` from its bytes to the callback, and nothing else needs to be open beside them:

1. ``scale``: bytes, hashes, and where a chain's state keeps its items
2. ``tries``: Merkle tries, storage proofs, compact proofs
3. ``xcm``: the message that carries a ``Publish``, the barrier that lets it in, the executor that runs it
4. ``broadcaster``: the relay chain's pallet: registration, limits, times to live, deletion
5. ``walk``: what changed for one key between two tries
6. ``proof_pass``: one pass over all subscribed keys within a budget
7. ``subscriber``: the parachain's block: prune, verify, apply, call back
8. ``messages``: how much of a block messages leave for publish-subscribe

Not in it: the links and heads by which a chain knows its messages, the advancement of channels, the budget policies
``cumulus`` and ``floor``, the metering ``carried``, and limits of publishers, keys and cached bytes.

``vectors`` runs the conformance vectors through the chapters: ``python -m relaycast_spec.vectors``.

Law: the standard library only, and one rule for each function. ``DECISION`` marks a line where RFC-0160 or the public
drafts are silent or contradict each other, with the name of the policy where there is a choice. ``Scenario`` names a
scenario of the specification beside the rule that makes it true.
"""
