"""The tools of the runtime: files, shell and MCP servers, behind one narrow interface.

A tool does its work and says how it went. It never checks permission, writes a receipt or retries.
"""
