# MUST: nothing about a file outside can be changed: not its permissions, times, owner or attributes either
import os
open('mine', 'w').close()
os.chmod('mine', 0o600)
os.utime('mine', (1, 1))
control(os.stat('mine').st_mtime == 1 or C['tier'] == 'C')
for path in (ANSWER, C['task_dir'], os.path.realpath('/bin/sh'), '/usr/lib'):
    for name, act in dict(chmod=lambda: os.chmod(path, 0o777), utime=lambda: os.utime(path), chown=lambda: os.chown(path, os.getuid(), os.getgid()), xattr=lambda: os.setxattr(path, 'user.x', b'1'),
            truncate=lambda: os.truncate(path, 0), rename=lambda: os.rename(path, path + '.x'), unlink=lambda: os.unlink(path), new=lambda: open(path + '/x', 'w')).items():
        before = os.stat(path) if os.path.exists(path) else None
        try: act()
        except OSError: continue
        after = os.stat(path) if os.path.exists(path) else None
        if before is None or after is None or (before.st_mode, before.st_ctime_ns) != (after.st_mode, after.st_ctime_ns): pwn(f'{name} {path}')
blocked('outside')
