"""The rules of the repository, as tests."""
