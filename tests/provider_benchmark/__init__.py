"""The benchmark of the scripted provider: the same requests against it, a bare aiohttp server and npm's aimock.

``make bench-provider`` runs it and writes ``docs/performance.md``. It asserts no time: a number is a ratio in one run.
"""
