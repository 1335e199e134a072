"""The peers of the tests: real MCP servers, well-behaved ones and faulty ones."""
