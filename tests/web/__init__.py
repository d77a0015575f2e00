"""Tests of the reference runtime's page: the guard, the server's command line, and the page in a real browser."""
