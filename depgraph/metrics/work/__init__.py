"""How much work there is, and when it can be done."""
