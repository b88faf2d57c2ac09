# MUST: the only open files are the job's own pipes and null: no folder, socket or file of whoever started it
import os, stat
control(os.fstat(1))
for fd in range(256):
    try: info = os.fstat(fd)
    except OSError: continue
    if stat.S_ISFIFO(info.st_mode): blocked(f'{fd} is a pipe')
    elif fd < 3 and stat.S_ISCHR(info.st_mode) and info.st_rdev == os.stat('/dev/null').st_rdev: blocked(f'{fd} is null')
    else: pwn(f'{fd}: {os.readlink(f"/proc/self/fd/{fd}")}')
    try: os.set_blocking(fd, False); (pwn if (data := os.read(fd, 99)) else blocked)(f'read {fd}: {data}')
    except OSError: pass
    if os.path.isdir(f'/proc/self/fd/{fd}'): pwn('a folder')
