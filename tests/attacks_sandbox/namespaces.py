# MUST: no new namespace, and no way into another one
import ctypes, os
L = ctypes.CDLL(None, use_errno=True)
L.unshare.argtypes = L.setns.argtypes = None
control(os.path.exists('/proc/self/ns/pid'))
flags = dict(user=0x10000000, mount=0x20000, pid=0x20000000, net=0x40000000, ipc=0x08000000, uts=0x04000000, cgroup=0x02000000, time=0x80)
for name, flag in flags.items():
    (pwn if L.unshare(flag) == 0 else blocked)(f'unshare {name}')
    if name != 'time':
        child = L.syscall(56, flag | 17, 0, 0, 0, 0)
        if child == 0: os._exit(0)
        (pwn if child > 0 else blocked)(f'clone {name}')
arguments = (ctypes.c_uint64*11)(0x10000000, 0, 0, 0, 17)
child = L.syscall(435, arguments, 88)
if child == 0: os._exit(0)
(pwn if child > 0 else blocked)('clone3')
for pid in ('1', 'self'):
    for name in ('user', 'mnt', 'pid', 'net', 'ipc'):
        try: (pwn if L.setns(os.open(f'/proc/{pid}/ns/{name}', 0), 0) == 0 else blocked)(f'setns {pid} {name}')
        except OSError as e: blocked(e)
