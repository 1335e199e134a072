"""The client under test of the conformance suite: ``make conformance``, or ``scripts/conformance.py``."""
