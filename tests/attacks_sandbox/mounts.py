# MUST: no mount, no other root, nothing unmounted that hides what lies below
import ctypes, os
L = ctypes.CDLL(None, use_errno=True)
os.makedirs('at/old')
control(os.path.isdir('at/old'))
acts = dict(tmpfs=lambda: L.mount(b'x', b'at', b'tmpfs', 0, None), bind=lambda: L.mount(b'/proc', b'at', None, 4096, None), proc=lambda: L.mount(b'proc', b'at', b'proc', 0, None),
    rw=lambda: L.mount(b'none', b'/', None, 32 | 4096, None), job=lambda: L.umount2(os.getcwd().encode(), 2), proc_away=lambda: L.umount2(b'/proc', 2), passwd=lambda: L.umount2(b'/etc/passwd', 2),
    pivot=lambda: L.syscall(155, b'at', b'at/old'), chroot=lambda: L.chroot(b'at'), move=lambda: L.syscall(429, -100, b'/proc', -100, b'at', 0))
for name, act in acts.items(): (pwn if act() == 0 else blocked)(name)
try:
    root = os.open('/', os.O_DIRECTORY)
    for _ in range(50): root = os.open('..', os.O_DIRECTORY, dir_fd=root)
    (pwn if TOKEN in open(ANSWER, opener=lambda p, f: os.open(p.lstrip('/'), f, dir_fd=root)).read() else blocked)('above the root')
except OSError as e: blocked(e)
