"""A read-only page about the sessions of the reference runtime: how each ended, and what is known of its tool calls.

It listens on loopback only, changes nothing, and shows no tool arguments: those need an explicit inspection (P2, M2).
"""
