"""Configuration as text: ``mcp.json`` dialects in, our own form out, references to variables.

Pure functions of their arguments: no Django, no settings, no files, no environment.
"""
