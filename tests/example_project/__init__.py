"""Tests of the example project: its servers, its settings and the demo."""
