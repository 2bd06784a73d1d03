"""What this machine can do: found by looking, said in sentences, with the install line for what is missing.

`survey.look` asks everything at once, each question in a thread of its own and with a limit, so that a hanging tool or
a broken package costs its own line and nothing else. This process imports no torch, triton, tilelang, pydantic, hydra
or dspy; what has to be imported or executed to be known runs in `children`. Nothing is sent anywhere but to loopback
addresses, and the report holds no key, no home folder, no user and no host name.
"""
