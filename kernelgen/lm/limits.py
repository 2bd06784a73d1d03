"""The bounds on one request to a provider. How long a reply may take is the config's (`lm.timeout_s`)."""

from typing import Final

CONNECT_SECONDS: Final = 10.0
LONGEST_WAIT_SECONDS: Final = 60.0  # honoured of a provider's Retry-After
LARGEST_REPLY_BYTES: Final = 8 * 2**20  # a long reply with its reasoning is well below one MiB
