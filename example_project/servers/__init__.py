"""Real MCP servers for trying things out. Each also runs as a plain script and needs only ``mcp``."""
