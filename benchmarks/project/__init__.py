"""The smallest project with our REST API, and beside it an endpoint that does nothing."""
