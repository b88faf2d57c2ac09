# MUST: no terminal to type into, no console, no pseudo-terminal of the host
import fcntl, os
control(not os.isatty(0))
for name in ('tty', 'console', 'tty1', 'ptmx', 'pts/0', 'vcs', 'kmsg', 'mem', 'port', 'kvm', 'fuse', 'net/tun', 'loop-control', 'vsock', 'dri/card0', 'nvidia0'):
    for flags in (os.O_RDONLY, os.O_RDWR):
        try: os.close(os.open(f'/dev/{name}', flags)); pwn(f'opened /dev/{name}')
        except OSError: pass
for fd in range(3):
    for request in (0x5412, 0x541c, 0x540e):
        try: fcntl.ioctl(fd, request, b'x'); pwn(f'ioctl {request:x} of {fd}')
        except OSError as e: blocked(e)
