"""The child itself, from its fork to its job: its descriptors, its environment, its containment."""

from __future__ import annotations

import faulthandler
import fcntl
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

from kernelgen.ladder.channel import Channel
from kernelgen.ladder.containment import applying, environment, libc, limits
from kernelgen.ladder.containment.order import READY, Order

CHANNEL_FD, KEEPER_FD, FIRST_UNUSED_FD = 3, 4, 5
# above every descriptor that is given
MOVED_FD = 64


def die_with(parent: int) -> None:
    """Be killed when the parent of this pid dies, or end now where it is dead already."""
    libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


def become(order: Order, keeper: socket.socket) -> None:
    """Leave everything of the server behind but what it imported, be contained, and do the job."""
    os.setsid()  # else signals to its group would reach the keeper
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _place_descriptors(order, keeper)
    os.chdir(order.folder)
    os.environ.update(environment.of_folder(order.folder))
    tempfile.tempdir = order.folder  # the server's own may be remembered there
    os.umask(0o077)
    sys.argv[:] = [""]
    listener = _contain(order)
    with socket.socket(fileno=KEEPER_FD) as told:
        socket.send_fds(told, [READY], [] if listener is None else [listener])
    if listener is not None:
        os.close(listener)
    faulthandler.enable(all_threads=False)
    order.job(Channel(socket.socket(fileno=CHANNEL_FD), Path(order.folder)))
    sys.stdout.flush()
    sys.stderr.flush()


def _contain(order: Order) -> int | None:
    """Put containment on; what fails is told to the keeper, and ends this process."""
    try:
        if order.contained:
            return applying.contain_child(order.record, order.paths, folder=order.folder, allowed=order.limits)
        limits.apply(order.limits, own_user_namespace=False)
    except OSError as error:
        os.write(KEEPER_FD, f"it could not be contained: {error.strerror}".encode())
        raise SystemExit(1) from error
    return None


def _place_descriptors(order: Order, keeper: socket.socket) -> None:
    """Nothing on the input, the output for both streams, the channel, the keeper, and no other descriptor."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    given = (nothing, order.output, order.output, order.channel, keeper.fileno())
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, MOVED_FD) for descriptor in given]
    for descriptor, source in enumerate(moved):
        os.dup2(source, descriptor, inheritable=descriptor < CHANNEL_FD)
    libc.close_from(FIRST_UNUSED_FD)
