"""The conformance suite: what an independent implementation of pub-sub is tested against, as files of JSON.

``suite`` writes and checks the files, ``kinds`` lists what they hold. ``README.md`` is the suite's own page: it
explains every file and field to readers who do not know this project.
"""
