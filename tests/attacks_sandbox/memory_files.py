# MUST: files in memory (memfd, /dev/shm, /tmp) stop at the quota of the disk
import os
total, reasons = 0, []
def fill(path):
    global total
    fd = path() if callable(path) else os.open(path, os.O_CREAT | os.O_WRONLY)
    for _ in range(8): total += os.write(fd, bytes(1 << 20))
    return fd
control(fill('/tmp/first'))
for kind in (lambda i: f'/dev/shm/{i}', lambda i: f'/tmp/{i}', lambda i: f'x{i}', lambda i: lambda: os.memfd_create(str(i))):
    try:
        for i in range(30): fill(kind(i))
    except OSError as e: reasons.append(e.strerror)
(pwn if total >> 20 > C['most_mb'] else blocked)(f'{total >> 20} MiB, {reasons}')
