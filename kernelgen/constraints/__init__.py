"""The constraint database: the file, the rule language, and what of it reaches a prompt."""
