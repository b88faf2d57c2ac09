# MUST: no limit, priority or protection of its own can be raised
import ctypes, os, resource
control(resource.getrlimit(resource.RLIMIT_FSIZE)[1] > 0)
for name in ('AS', 'FSIZE', 'NPROC', 'NOFILE', 'CORE', 'CPU', 'MEMLOCK', 'MSGQUEUE', 'NICE', 'RTPRIO', 'SIGPENDING', 'DATA'):
    limit = getattr(resource, f'RLIMIT_{name}', None)
    if limit is None: continue
    hard = resource.getrlimit(limit)[1]
    for pid in (0, os.getpid()):
        try: resource.prlimit(pid, limit, (resource.RLIM_INFINITY,)*2); hard == resource.RLIM_INFINITY or pwn(f'raised {name}')
        except (OSError, ValueError): pass
def attempt(what, act):
    try: act(); pwn(what)
    except (OSError, PermissionError) as e: blocked(f'{what}: {e.strerror}')
def write(path, text):
    with open(path, 'w') as f: f.write(text)
attempt('oom_score_adj', lambda: write('/proc/self/oom_score_adj', '-1000'))
attempt('oom_adj', lambda: write('/proc/self/oom_score_adj', '0'))
attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1))
attempt('real time', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
attempt('mlock', lambda: ctypes.CDLL(None).mlockall(3) and os.open('/nowhere', 0))
for path in ('/sys/fs/cgroup', '/proc/self/cgroup'):
    try: attempt('cgroup', lambda: write(os.path.join(path, 'cgroup.procs'), '1'))
    except OSError: pass
