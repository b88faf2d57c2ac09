# MUST: of any process but its own the job can neither read memory, environment, files or folders, nor change anything
import ctypes, os, signal
L = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0: signal.pause()
own = {os.getpid(), child}
control(os.path.exists(f'/proc/{child}/stat') or not os.path.exists('/proc/1'))
def listed():
    try: return os.listdir('/proc')
    except OSError: return []
pids = {1, 2, 3, C['victim'], os.getppid(), *(int(n) for n in listed() if n.isdigit())} - own - {0}
for pid in pids:
    for name in ('environ', 'mem', 'maps', 'auxv', 'syscall', 'stack', 'pagemap', 'io', 'root/etc', 'cwd/.', 'fd', 'map_files', 'task/{}/environ'):
        path = f'/proc/{pid}/{name}'.format(pid)
        try:
            if os.path.isdir(path): found = [os.readlink(f'{path}/{n}') for n in os.listdir(path)] if name == 'fd' else os.listdir(path)
            else:
                with open(path, 'rb') as f: found = f.read(64) if name not in ('mem', 'pagemap') else True
            if found: pwn(f'{path}: {str(found)[:60]}')
        except OSError: pass
    for name in ('oom_score_adj', 'mem', 'comm', 'clear_refs', 'timerslack_ns', 'uid_map'):
        try:
            with open(f'/proc/{pid}/{name}', 'r+b', 0) as f: f.write(b'1')
            pwn(f'wrote {name} of {pid}')
        except OSError: pass
    here = (ctypes.c_ulong*2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    acts = dict(attach=lambda: L.ptrace(16, pid, 0, 0), seize=lambda: L.ptrace(0x4206, pid, 0, 0), readv=lambda: L.syscall(310, pid, here, 1, here, 1, 0), writev=lambda: L.syscall(311, pid, here, 1, here, 1, 0),
        prlimit=lambda: L.prlimit(pid, 7, (ctypes.c_ulong*2)(3, 3), None), affinity=lambda: L.sched_setaffinity(pid, 8, (ctypes.c_ulong*1)(1)), nice=lambda: L.setpriority(0, pid, 19), kill=lambda: pid != 1 and L.kill(pid, 9) or -(pid == 1))
    for name, act in acts.items():
        if act() == 0: pwn(f'{name} {pid}')
blocked(f'{len(pids)} processes')
os.kill(child, 9)
