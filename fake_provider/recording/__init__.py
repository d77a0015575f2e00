"""Recording: a proxy in front of a real provider, and the readers that turn its replies into a script's steps.

The proxy is the only part of the provider that talks to anything but loopback, and only to the one address that it is
given. What is written holds replies alone: no request, no prompt and no key.
"""
