"""The servers that are measured against, and how to start them."""
