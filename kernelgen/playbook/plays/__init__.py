"""The playbook's kernels: one folder a target, one kernel file and one description a play.

A play `NAME` is two files side by side. `NAME.py` is a complete Triton module that defines the target's entry point and
its own `AUTOTUNE_CONFIGS`; host parameters worth varying are module constants. `NAME.yaml` says in which order it is
tried, why it should be faster, and which constants to vary afterwards. To add one, copy such a pair; kernels have names
that no other play of the target uses, since a past attempt is recognised by them. tests/playbook checks the rest.
"""
