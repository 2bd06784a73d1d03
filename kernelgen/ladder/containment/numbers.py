"""Numbers of system calls on x86_64 and on aarch64; None where an architecture lacks one."""

from __future__ import annotations

# name: (x86_64, aarch64)
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # sockets; socketpair stays, between connected ends alone
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "socketpair": (53, 199),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
    # starting processes
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435), "execve": (59, 221),
    "execveat": (322, 281),
    # the view of the system
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # the kernel's own affairs
    "bpf": (321, 280), "perf_event_open": (298, 241), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "seccomp": (317, 277), "fanotify_init": (300, 262), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "vhangup": (153, 58), "lookup_dcookie": (212, 18),
    # memory and messages that outlive a process
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
    "msgget": (68, 186), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    # changes of a file that Landlock does not see
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "truncate": (76, 45),
}  # fmt: skip
