"""How fast many proofs and many blocks are on Spark, and what Spark costs beside plain processes with the same calls.

``proof_rates`` makes and verifies proofs, ``run_rates`` runs a relay chain by both engines. Starting Spark is told
apart: what is compared goes on for minutes, in a session that is there.
"""
