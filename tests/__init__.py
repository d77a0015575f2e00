"""Tests of everything here."""
