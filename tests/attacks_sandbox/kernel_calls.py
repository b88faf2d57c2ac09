# MUST: no way into the kernel's rarely used parts
import ctypes, errno, os
L = ctypes.CDLL(None, use_errno=True)
control(L.syscall(39) == os.getpid())
buffer = ctypes.create_string_buffer(256)
calls = dict(io_uring_setup=(425, 8, buffer), bpf=(321, 0, buffer, 72), userfaultfd=(323, 1), keyctl=(250, 0, -3, 1), add_key=(248, b'user', b'x', b'y', 1, -3),
    request_key=(249, b'user', b'x', 0, -3), perf_event_open=(298, buffer, 0, -1, -1, 0), fanotify_init=(300, 0, 0), memfd_secret=(447, 0), memfd_create=(319, b'x', 0),
    fsopen=(430, b'tmpfs', 0), open_tree=(428, -100, b'/', 1), fspick=(433, -100, b'/', 0), mount_setattr=(442, -100, b'/', 0, buffer, 32), name_to_handle_at=(303, -100, b'/', buffer, buffer, 0),
    open_by_handle_at=(304, -100, buffer, 0), process_madvise=(440, 0, buffer, 1, 0, 0), pidfd_getfd=(438, os.pidfd_open(os.getpid()), 0, 0), kcmp=(312, os.getpid(), os.getpid(), 0, 0, 1),
    personality=(135, 0x0040000), syslog=(103, 10, 0, 0), quotactl=(179, 0, b'/', 0, 0), init_module=(175, buffer, 9, b''), kexec_load=(246, 0, 0, 0, 0), iopl=(172, 3), swapon=(167, b'/job/x', 0),
    acct=(163, b'/job/x'), shmget=(29, 77, 4096, 0o1666), msgget=(68, 77, 0o1666), semget=(64, 77, 1, 0o1666), mq_open=(240, b'x', 66, 0o666, 0), ptrace=(101, 0, 0, 0, 0),
    clock_settime=(227, 0, buffer), sethostname=(170, b'x', 1), reboot=(169, 0xfee1dead, 672274793, 0, 0), vhangup=(153,), landlock=(444, 0, 0, 1), modify_ldt=(154, 0, buffer, 16))
for name, (number, *arguments) in calls.items():
    result = L.syscall(number, *arguments)
    reason = ctypes.get_errno()
    if result >= 0 or reason not in (errno.EPERM, errno.ENOSYS, errno.EACCES): pwn(f'{name} -> {result} {os.strerror(reason)}')
blocked(f'{len(calls)} calls')
