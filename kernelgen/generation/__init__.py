"""The verb `generate`, its recovery after a kill, and its replay.

`prepare` turns configs and the log into everything one generation depends on, or refuses; `run` asks the model and
writes the candidate; `logged` reads a prepared generation back from the log; `recover` finishes killed ones; `replay`
makes a logged one again and compares.
"""
