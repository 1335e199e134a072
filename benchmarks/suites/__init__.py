"""What is measured; each suite fills in figures."""
