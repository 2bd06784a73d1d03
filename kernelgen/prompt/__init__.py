"""The prompt and the reply: typed inputs to messages, a model's text to a Reply.

`assemble`, `reply` and `program` are plain text work; `signature` and `adapter` are DSPy's side and import it.
"""
