# MUST: no way to another user: set-user-id programs, capabilities, ids
import ctypes, os, shutil, subprocess
control(os.getuid() != 0 or C['tier'] == 'none')
def become_owner():
    os.chown('.', 0, 0)
    if os.stat('.').st_uid != 0: raise PermissionError(1, 'nothing changed')
L = ctypes.CDLL(None, use_errno=True)
for name, act in dict(uid=lambda: os.setuid(0), gid=lambda: os.setgid(0), res=lambda: os.setresuid(0, 0, 0), groups=lambda: os.setgroups([0]), chown=become_owner, mknod=lambda: os.mknod('disk', 0o60666, os.makedev(8, 0)), mem=lambda: os.mknod('mem', 0o20666, os.makedev(1, 1))).items():
    try: act(); pwn(name)
    except OSError as e: blocked(f'{name}: {e.strerror}')
status = open('/proc/self/status').read()
for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'):
    if int(status.split(f'{name}:')[1].split()[0], 16): pwn(f'has {name}')
shutil.copy('/bin/sh', 'sh')
try: os.chmod('sh', 0o6755)
except OSError as e: blocked(e)
for program in ('./sh', '/bin/su', '/usr/bin/su', '/usr/bin/passwd', '/usr/bin/sudo', '/usr/bin/newuidmap'):
    try: out = subprocess.run([program, '-c', 'id -u; cat /etc/shadow'], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL).stdout
    except OSError as e: blocked(e); continue
    if out.startswith('0') or 'root:' in out: pwn(f'{program}: {out[:40]!r}')
if L.prctl(47, 2, 21, 0, 0) == 0: pwn('ambient')
blocked('done')
