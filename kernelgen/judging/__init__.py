"""Judging: the ladder run on a candidate, its verdict in the log, and what the verdict teaches or takes back.

A verb: it puts the ladder, the log and the constraints together. Everything derived follows from appended events alone.
"""
