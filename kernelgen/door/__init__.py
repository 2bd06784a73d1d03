"""The commands, one module each. `compose` and `generate` are the only importers of Hydra."""
