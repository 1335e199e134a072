"""Tests against published servers: real ones that others wrote, installed from npm and PyPI."""
