"""The verbs of the command line, by the question that they answer."""

from collections.abc import Mapping

QUESTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "How do I begin?": {
        "demo": ("relaycast.cli.simulate:demo", "Run a preset end to end: a summary here, a report in out/."),
        "list": ("relaycast.cli.scenario_files:list_presets", "List the presets: what each is and what it shows."),
        "new": ("relaycast.cli.scenario_files:new", "Write a commented scenario file to begin with."),
        "schema": ("relaycast.cli.scenario_files:schema", "Print the JSON Schema of scenario files, for editors."),
        "doctor": ("relaycast.cli.doctor:doctor", "Print what is installed, what is slow, and how to fix it."),
        "completion": ("relaycast.cli.completion:completion", "Print what bash, zsh or fish need to complete verbs."),
    },
    "What does my feed cost?": {
        "run": ("relaycast.cli.simulate:run", "Simulate a scenario file."),
        "predict": ("relaycast.cli.predict:predict", "Estimate the cost of a subscription by closed forms, at once."),
        "bench": ("relaycast.cli.bench:app", "Run the headline experiments E1 to E22, or time the engines here."),
    },
    "Does my budget hold?": {
        "budget": ("relaycast.cli.budget:budget", "Find the smallest budget that delivers everything."),
        "rank": ("relaycast.cli.rank:rank", "Try every policy, and say which is cheapest for each reader."),
        "compare": ("relaycast.cli.compare:compare", "Run the same publications under two designs, side by side."),
        "attack": ("relaycast.cli.attack:app", "Measure what spam, crafted keys and lying collators cost."),
        "pov": ("relaycast.cli.pov:app", "Keep proof sizes under version control; take a real block apart."),
    },
    "Can my client talk to the chain?": {
        "serve": ("relaycast.cli.serve:serve", "Serve a scenario's chains to polkadot.js, PAPI and other clients."),
    },
    "How do events reach my systems?": {
        "subscribe": ("relaycast.cli.subscribe:app", "Push the events of a running server to a webhook or a broker."),
        "history": ("relaycast.cli.history:history", "Print the events that a running server keeps of a topic."),
        "icrc": ("relaycast.cli.icrc:app", "Call the ICRC-72 canisters of a running server."),
    },
    "What is in these bytes?": {
        "proof": ("relaycast.cli.proof:app", "Make, verify and show storage proofs."),
        "trie": ("relaycast.cli.trie:app", "Compute the root of key-value pairs; draw their trie."),
        "scale": ("relaycast.cli.scale:app", "Turn JSON into SCALE bytes and back, for every type of pub-sub."),
        "xcm": ("relaycast.cli.xcm:app", "Turn XCM messages from JSON into bytes; explain their bytes."),
    },
    "How does it work on a real chain?": {
        "import": ("relaycast.cli.import_:app", "Read real chain data and check it by its state root."),
        "runtime": ("relaycast.cli.runtime:app", "Show, call and compare real runtimes."),
        "vectors": ("relaycast.cli.vectors:app", "Write and check a conformance suite for other implementations."),
    },
    "How do I run very many?": {
        "sweep": ("relaycast.cli.sweep:sweep", "Run a grid of scenarios, seeds and policies as one Spark job."),
        "prove": ("relaycast.cli.prove:prove", "Make proofs in bulk for a state, on Spark."),
        "verify-proofs": ("relaycast.cli.verify_proofs:verify_proofs", "Verify a table of proofs in bulk."),
    },
}
"""Where each verb stands, and its line on the help page; its module is loaded when it is called."""

WORDS: Mapping[str, str] = {
    "best": "rank, which tries every policy",
    "cheapest": "rank, which tries every policy",
    "chart": "bench, whose experiments draw one each, or run, whose report has them",
    "cost": "run, which measures it, or predict, which estimates it at once",
    "costs": "run, which measures them, or predict, which estimates them at once",
    "decode": "scale decode or xcm decode for bytes, proof show for a proof",
    "estimate": "predict",
    "example": "demo, or list for all presets",
    "examples": "list, which names the presets",
    "experiment": "bench, such as bench E4",
    "experiments": "bench, such as bench E4",
    "init": "new, which writes a scenario file",
    "node": "serve",
    "presets": "list",
    "report": "run, which writes report.html, or compare",
    "simulate": "run",
    "start": "demo, or serve for a node",
    "verify": "proof verify for one proof, verify-proofs for a table of them",
    "version": "none; it is relaycast --version",
    "webhook": "subscribe",
}
"""Words that people type, and the verbs that they look for."""

VERBS: Mapping[str, tuple[str, str]] = {name: verb for verbs in QUESTIONS.values() for name, verb in verbs.items()}


def overview() -> str:
    """Return what the command can do, a line for each question."""
    width = max(map(len, QUESTIONS))
    return "\n".join(
        [
            "relaycast shows what publish-subscribe over Polkadot's relay chain (RFC-0160) costs.",
            *(f"  {question:{width}}  {', '.join(verbs)}" for question, verbs in QUESTIONS.items()),
            "First: relaycast demo. Every verb: relaycast help. One verb, with an example: relaycast help VERB.",
        ]
    )
