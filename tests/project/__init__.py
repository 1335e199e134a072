"""Tests that hold the repository itself to its rules: layout, imports, documentation, changelog."""
