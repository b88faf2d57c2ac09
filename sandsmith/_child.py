"""Runs inside the sandbox, never in the library: a process that has loaded its packages forks one child a job.

`sandsmith.zygote` starts it as `python -P -s -S _child.py CONTROL CONFIG` (two file descriptors). The zygote runs no code of a job
and never sees any: a job's text travels in a file descriptor that only its child reads. It imports packages and does nothing with
them before a fork: what scikit-learn, lightgbm, polars and torch start when they are used (thread pools) does not survive one.
Each child isolates itself, says so, and only then runs the job. The zygote watches the clock, kills, and reports how the job ended.
"""
import ctypes, gc, io, marshal, os, resource, select, signal, site, socket, struct, sys, time, warnings

GRACE_S = .04       # a call that outlives its own alarm by this much is ended from outside
TICK_S = .05        # how often the memory of a job's processes is added up
MAX_DEPTH = 32      # nesting of a tool's result
MAX_TEXT = 4096     # characters of an error or of an object's text
OUT, ERR, RESULT, NOTE, REQUEST, FOLDER, SPARE = range(1, 8)  # file descriptors of a child; the last while it waits

NEWNS, NEWIPC, NEWUSER, NEWPID = 0x20000, 0x08000000, 0x10000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 0x4000, 0x4000 | 1 << 18
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT = range(428, 433)  # the same numbers on every architecture
AT_EMPTY_PATH, CLOEXEC = 0x1000, os.O_CLOEXEC
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 4, 22, 24, 47, 38, 36
libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    if result >= 0: return result
    number = ctypes.get_errno()
    raise OSError(number, f'{what}: {os.strerror(number)}')


def syscall(number: int, *args) -> int: return checked(libc.syscall(ctypes.c_long(number), *args), f'system call {number}')


def prctl(option: int, *args: int) -> int: return checked(libc.prctl(option, *(*args, 0, 0, 0, 0)[:4]), f'prctl {option}')


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    names = [None if s is None else s.encode() for s in (source, target, kind, data)]
    checked(libc.mount(*names[:3], ctypes.c_ulong(flags), names[3]), f'mount {target}')


# ---- the zygote

def main(control_fd: int, config_fd: int) -> None:
    with open(config_fd, 'rb') as f: config = marshal.load(f)
    control = socket.socket(fileno=keep_clear(control_fd))
    config['pid_ns'] = os.open('/proc/self/ns/pid', os.O_RDONLY | CLOEXEC)
    if 'namespaces' not in config['layers']:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_DUMPABLE, 0)  # jobs may have the same user
    load(config)
    gc.collect()
    gc.freeze()
    gc.disable()
    control.send(marshal.dumps({'memory_kb': own_memory_kb()}))
    while True:
        spare = make_spare(config)  # while nobody waits
        data, fds, _, _ = socket.recv_fds(control, 1 << 16, 8)
        while data and (plan := marshal.loads(data))['do'] != 'job':
            made = [new_tmpfs(*plan['folder'])] if plan['do'] == 'folder' else []
            if not made: fork_only()
            socket.send_fds(control, [b'done'], made)
            for fd in made: os.close(fd)
            data, fds, _, _ = socket.recv_fds(control, 1 << 16, 8)
        if not data: os._exit(0)
        made = [new_tmpfs(*plan['folder'])] if plan['folder'] else []
        socket.send_fds(control, [marshal.dumps(run_one(spare, plan, fds + made, config, control))], made)
        for fd in fds + made: os.close(fd)


def keep_clear(fd: int) -> int:
    "Keep the low file descriptors for the children; the given one moves up."
    import fcntl
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(fd)
    while (filler := os.open('/dev/null', os.O_RDONLY | CLOEXEC)) < 10: pass
    os.close(filler)
    return moved


def load(config: dict) -> None:
    "Import what jobs will want, and touch what every child needs, so that it is not paid for in each."
    import importlib, json, linecache, random, tempfile, traceback  # noqa: F401
    warnings.filterwarnings('ignore', message='.*multi-threaded.*fork', category=DeprecationWarning)
    sys.path[:] = [p for p in sys.path if p not in config['packages']] + config['packages']
    sys.prefix = sys.exec_prefix = config['prefix']
    if 'landlock' in config['layers']: config['landlock'] = landlock_calls()
    tempfile.tempdir = '/tmp'  # nothing is writable here, and some packages ask while they are imported
    for name in config['preload']:
        try: importlib.import_module(name)
        except Exception: pass  # a job that wants it will say so
    tempfile.tempdir = None
    site.setquit()
    site.sethelper()
    exec(compile('[str(i) for i in range(3)]', '<warm>', 'exec'), {})
    json.dumps({'a': 1.5})
    traceback.format_exception(ValueError('x'))
    if config['bpf']:
        config['bpf_text'] = ctypes.create_string_buffer(config['bpf'], len(config['bpf']))
        config['filter'] = struct.pack('HxxxxxxP', len(config['bpf'])//8, ctypes.addressof(config['bpf_text']))


def own_memory_kb() -> int:
    with open('/proc/self/statm') as f: return (int(f.read().split()[1])*resource.getpagesize()) >> 10


def new_tmpfs(size: int, n_files: int, uid: int) -> int:
    "A file system in memory, mounted nowhere; lives as long as the descriptor."
    fs = syscall(FSOPEN, b'tmpfs', 1)
    try:
        options = {'size': size, 'nr_inodes': n_files + 1, 'mode': '0755', 'uid': uid, 'gid': uid}
        for name, value in options.items(): syscall(FSCONFIG, fs, 1, name.encode(), str(value).encode(), 0)
        syscall(FSCONFIG, fs, 6, None, None, 0)
        return syscall(FSMOUNT, fs, 1, MS_NOSUID | MS_NODEV)
    finally: os.close(fs)


def make_spare(config: dict) -> dict:
    "Fork the child of the next job; it does what can be done beforehand, and waits."
    init = start_init(config) if 'namespaces' in config['layers'] else None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    note_r, note_w = os.pipe()
    pid = os.fork()
    if pid == 0: run_child(theirs.fileno(), note_w, config)
    os.close(note_w)
    theirs.close()
    return {'pid': pid, 'init': init, 'socket': ours, 'note_fd': note_r}


def fork_only() -> None:
    "What a job costs when nothing is isolated and nothing is run: the measure of `sandsmith bench sandbox`."
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)


def run_one(spare: dict, plan: dict, fds: list[int], config: dict, control: socket.socket) -> tuple:
    "Give the job to the child and wait for its end. -> as `watch`, then microseconds."
    attached = [syscall(OPEN_TREE, fds[-1], b'', AT_EMPTY_PATH | CLOEXEC | 1)] if spare['init'] else []  # a copy of the mount, to move
    started = time.monotonic()
    with spare['socket'] as s: socket.send_fds(s, [b'go'], [*fds[:4], *attached])
    try: ending = watch(spare['pid'], spare['init'] or spare['pid'], spare['note_fd'], plan, control)
    finally:
        for fd in (spare['note_fd'], *attached): os.close(fd)
    seconds = time.monotonic() - started
    if spare['init']: # process 1 takes its namespace with it: when it is reaped, nothing is left
        os.kill(spare['init'], signal.SIGKILL)
        os.waitpid(spare['init'], 0)
    else:
        end_descendants()
        if os.getpid() == 1: empty_shared_memory()
    return *ending, int(seconds*1e6)


def start_init(config: dict) -> int:
    "A process 1 for the next job, which does nothing but hold its namespace; children forked from now on are born in there."
    checked(libc.setns(config['pid_ns'], NEWPID), 'setns')
    checked(libc.unshare(NEWPID), 'unshare')
    pid = os.posix_spawn(config['sleep'], ['init', 'infinity'], {})
    fd = os.open(f'/proc/{pid}/ns/pid', os.O_RDONLY | CLOEXEC)
    checked(libc.setns(fd, NEWPID), 'setns')
    os.close(fd)
    return pid


def watch(pid: int, first: int, note_fd: int, plan: dict, control: socket.socket) -> tuple[bool, str, bool, int, int, int]:
    "Wait for the job and kill it at its limits."
    # -> is ready, why it was killed, had MemoryError, exit code (negative: signal), peak KiB, calls begun
    os.set_blocking(note_fd, False)
    began = time.monotonic()
    call_s, end = plan['call_timeout_s'], began + plan['timeout_s']
    call_end = end if call_s is None else began + plan['load_s']
    next_sum = began + TICK_S
    is_ready, is_memory, why, n_calls, pid_fd = False, False, '', 0, os.pidfd_open(pid)
    poller = select.poll()
    for fd in (pid_fd, note_fd, control.fileno()): poller.register(fd, select.POLLIN)
    try:
        while True:
            now = time.monotonic()
            if not why and now >= min(end, call_end): why = 'timeout'
            elif not why and plan['memory_kb'] and now >= next_sum:
                next_sum = now + TICK_S
                if total_memory_kb(plan['own_kb']) > plan['memory_kb']: why = 'memory'
            if why: os.kill(first, signal.SIGKILL)  # process 1 of the namespace: the kernel takes all others with it
            left = min(end, call_end, *([next_sum] if plan['memory_kb'] else [])) - now
            ready = [fd for fd, _ in poller.poll(None if why else max(0, 1000*left + .5))]
            if control.fileno() in ready: abandon(first)  # the supervisor is gone: nothing is asked while a job runs
            notes = read_notes(note_fd) if note_fd in ready or pid_fd in ready else b''
            if note_fd in ready and not notes: poller.unregister(note_fd)
            n_calls += notes.count(b'.')
            if b'.' in notes and call_s is not None: call_end = time.monotonic() + call_s + GRACE_S
            is_ready, is_memory = is_ready or b'R' in notes, is_memory or plan['nonce'] in notes
            if pid_fd in ready:
                _, status, usage = os.wait4(pid, 0)
                return is_ready, why, is_memory, os.waitstatus_to_exitcode(status), usage.ru_maxrss, n_calls
    finally: os.close(pid_fd)


def abandon(first: int) -> None:
    "End the job and this process."
    os.kill(first, signal.SIGKILL)
    end_descendants()
    os._exit(0)


def read_notes(fd: int) -> bytes:
    "What the job noted: R it is set up, . a call begins, the nonce: MemoryError. After R the job can write here what it likes."
    try: return os.read(fd, 4096)
    except BlockingIOError: return b''


def total_memory_kb(own_kb: int) -> int:
    "Memory of all processes that descend from this one, beyond what each shares with it."
    used, parents, own = {}, {}, os.getpid()
    for name in os.listdir('/proc'):
        if not name.isdigit(): continue
        try:
            with open(f'/proc/{name}/status') as f: lines = dict(line.split(':', 1) for line in f if line.startswith(('PPid', 'Rss')))
        except (OSError, ValueError): continue
        anonymous, shared = (int(lines.get(key, '0 kB').split()[0]) for key in ('RssAnon', 'RssShmem'))
        used[int(name)], parents[int(name)] = max(0, anonymous - own_kb) + shared, int(lines.get('PPid', 0))
    def is_ours(pid: int) -> bool:
        while pid and pid != own: pid = parents.get(pid, 0)
        return pid == own
    return sum(kb for pid, kb in used.items() if pid != own and is_ours(pid))


def end_descendants() -> None:
    "Without a namespace of the job's own: kill what is left until nothing is."
    while True:
        if os.getpid() == 1:
            try: os.kill(-1, signal.SIGKILL)  # all of this shell but this process
            except ProcessLookupError: pass
        else:
            for pid in children_of(os.getpid()):
                try: os.kill(pid, signal.SIGKILL)
                except OSError: pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]: pass
        except ChildProcessError: return  # orphans come to this process, so none is left
        time.sleep(.001)


def empty_shared_memory() -> None:
    "In a shell without namespaces of the job's own: /dev/shm is the next job's, too. There are files alone, see `restrict_paths`."
    os.chmod('/dev/shm', 0o1777)
    for name in os.listdir('/dev/shm'): os.unlink(f'/dev/shm/{name}')


def children_of(parent: int) -> list[int]:
    found = []
    for name in os.listdir('/proc'):
        if not name.isdigit(): continue
        try:
            with open(f'/proc/{name}/stat') as f: fields = f.read().rpartition(')')[2].split()
        except OSError: continue
        if int(fields[1]) == parent: found.append(int(name))
    return found


# ---- the child, until it is isolated

def run_child(socket_fd: int, note_fd: int, config: dict) -> None:
    "Get ready, wait for a job, isolate it, run it. Never returns."
    code, fault = 1, None
    try:
        for fd, target in ((socket_fd, SPARE), (note_fd, NOTE)): os.dup2(fd, target)
        close_from(SPARE + 1)
        try: enter_namespaces(config)
        except OSError as e: fault = e
        waiting = socket.socket(fileno=SPARE)
        data, fds, _, _ = socket.recv_fds(waiting, 16, 8)
        if not data: os._exit(0)
        for fd, target in zip(fds, (REQUEST, OUT, ERR, RESULT, FOLDER)): os.dup2(fd, target)
        waiting.detach()
        close_from(SPARE)
        for fd in range(RESULT, SPARE): os.set_inheritable(fd, False)
        for name, fd in (('stdout', OUT), ('stderr', ERR)): # those of the zygote believe that they can seek
            stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(fd, 'wb', closefd=False)), 'utf-8', 'backslashreplace', line_buffering=True)
            setattr(sys, name, stream)
            setattr(sys, f'__{name}__', stream)
        if fault: raise fault
        with open(REQUEST, 'rb') as f: request = marshal.load(f)
        isolate(request, config)
        prepare(request)
        os.write(NOTE, b'R')
        if request['calls'] is None:
            os.close(RESULT)
            code = run_main(request)
        else: code = run_calls(request)
    except BaseException as e: show(e, None)
    finally:
        try: settle()
        finally: os._exit(code)


def settle() -> None:
    "What ends with an interpreter: files are written out, semaphores released. Threads and `atexit` functions are not waited for."
    acts = [stream.flush for stream in (sys.stdout, sys.stderr) if hasattr(stream, 'flush')]
    if 'multiprocessing.util' in sys.modules: acts.append(sys.modules['multiprocessing.util']._run_finalizers)
    acts += [o.flush for o in gc.get_objects() if type(o) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom) and not o.closed]
    for act in acts:
        try: act()
        except BaseException: pass


def close_from(fd: int) -> None:
    if hasattr(libc, 'close_range') and libc.close_range(fd, 0x7fffffff, 0) == 0: return
    os.closerange(fd, os.sysconf('SC_OPEN_MAX'))


def isolate(request: dict, config: dict) -> None:
    "Put up every fence of the tier, from the outermost in; none can be taken down again."
    layers = config['layers']
    prctl(PR_SET_DUMPABLE, 1)  # else its own /proc/self is closed to it
    if 'namespaces' in layers: mount_folders(request, config)
    else: os.close(FOLDER)
    with open(request['main'], 'xb') as f: f.write(request['code'])
    os.chmod(request['main'], 0o444)
    os.chdir(request['folder'])
    set_limits(request, request['n_processes'] if 'user' in layers or 'shell' in layers else None)
    if 'user' in layers: drop_user(request['uid'])
    elif 'namespaces' in layers: enter_user_namespace(request)
    if layers: drop_capabilities()
    prctl(PR_SET_DUMPABLE, 1)  # a new user id took it away
    if {'landlock', 'seccomp'} & set(layers): prctl(PR_SET_NO_NEW_PRIVS, 1)
    if 'landlock' in layers: restrict_paths(request, config)
    if 'seccomp' in layers: checked(libc.prctl(PR_SET_SECCOMP, 2, config['filter'], 0, 0), 'seccomp')


def enter_namespaces(config: dict) -> None:
    "Mounts and shared memory of the job's own, and a /proc that shows this job alone."
    if 'namespaces' not in config['layers']: return
    checked(libc.unshare(NEWNS | NEWIPC), 'unshare')
    mount('none', '/', None, MS_PRIVATE)
    mount('proc', '/proc', 'proc', MS_NOSUID | MS_NODEV | MS_NOEXEC)


def mount_folders(request: dict, config: dict) -> None:
    "Scratch space and the working folder."
    shown = {'/'.join(parts[:i + 1]) for path in config['in_tmp'] for parts in [path.split('/')] for i in range(2, len(parts))}
    n_files = request['n_files'] + 6 + len(shown)  # the folders and files that stand for the interpreter's
    mount('tmpfs', '/run', 'tmpfs', MS_NOSUID | MS_NODEV, f'mode=0755,size={request["disk"]},nr_inodes={n_files}')
    for name in ('tmp', 'shm'):
        os.mkdir(f'/run/{name}')
        os.chmod(f'/run/{name}', 0o1777)
    for path in config['in_tmp']: show_in_scratch(path, f'/run{path}')
    mount('/run/tmp', '/tmp', None, MS_BIND | MS_REC)
    mount('/run/shm', '/dev/shm', None, MS_BIND)
    with open('/run/passwd', 'w') as f: f.write(request['passwd'])
    mount('/run/passwd', '/etc/passwd', None, MS_BIND)
    syscall(MOVE_MOUNT, FOLDER, b'', -100, request['folder'].encode(), 4)
    os.close(FOLDER)


def show_in_scratch(path: str, target: str) -> None:
    "A part of the interpreter that lies below /tmp would be hidden by the job's own."
    is_dir = os.path.isdir(path)
    os.makedirs(target if is_dir else os.path.dirname(target), 0o755, exist_ok=True)
    if not is_dir: open(target, 'x').close()
    mount(path, target, None, MS_BIND | MS_REC)


def set_limits(request: dict, n_processes: int | None) -> None:
    "Resource limits, hard; what the zygote has loaded comes on top of the memory."
    with open('/proc/self/oom_score_adj', 'w') as f: f.write('1000')
    with open('/proc/self/statm') as f: loaded = int(f.read().split()[0])*resource.getpagesize()
    for name, value in (('AS', loaded + request['memory']), ('FSIZE', request['file']), ('CPU', request['cpu_s']), ('NOFILE', 1024),
                        ('CORE', 0), ('MEMLOCK', 0), ('MSGQUEUE', 0), ('NPROC', n_processes)):
        if value is None: continue
        limit = getattr(resource, f'RLIMIT_{name}')
        hard = resource.getrlimit(limit)[1]
        if hard != resource.RLIM_INFINITY: value = min(value, hard)
        resource.setrlimit(limit, (value, value))


def drop_user(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def enter_user_namespace(request: dict) -> None:
    "Without root: a user namespace, whose count of processes is the job's own."
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(NEWUSER), 'unshare')
    for name, text in (('setgroups', 'deny'), ('uid_map', f'{uid} {uid} 1'), ('gid_map', f'{gid} {gid} 1')):
        with open(f'/proc/self/{name}', 'w') as f: f.write(text)
    resource.setrlimit(resource.RLIMIT_NPROC, (request['n_processes'],)*2)


def drop_capabilities() -> None:
    libc.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)
    for capability in range(64): libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    checked(libc.capset(struct.pack('Ii', 0x20080522, 0), bytes(24)), 'capset')


def landlock_calls() -> dict:
    "The kernel's calls, and the rights that it knows."
    import py_landlock as ll
    from py_landlock.abi import get_supported_fs, get_supported_net, get_supported_scope
    version = ll.get_abi_version()
    ruleset = ll.RulesetAttr()
    ruleset.handled_access_fs, ruleset.handled_access_net = int(get_supported_fs(version)), int(get_supported_net(version))
    ruleset.scoped = int(get_supported_scope(version))
    return {'ruleset': ruleset, 'all': ruleset.handled_access_fs, 'path': ll.PathBeneathAttr, 'create': ll.create_ruleset,
            'add': ll.add_rule, 'restrict': ll.restrict_self}


def restrict_paths(request: dict, config: dict) -> None:
    "Landlock: what may be read, and the few places that may be written; no TCP, no signal and no socket to the outside."
    calls = config['landlock']
    read, write = 0b1101, calls['all'] & ~(1 << 6 | 1 << 11)        # no character or block devices
    of_a_file = calls['all'] & (0b111 | 1 << 14 | 1 << 15)
    plain_files = of_a_file & ~1 | 1 << 3 | 1 << 5 | 1 << 8         # no folders, links or sockets
    devices = [(f'/dev/{name}', 0b110) for name in ('null', 'zero', 'full', 'random', 'urandom')]
    writable = {p: plain_files if p == '/dev/shm' and 'namespaces' not in config['layers'] else write for p in request['writable']}
    rules = [*((p, read) for p in config['readable']), *writable.items(), *devices]
    fd = calls['create'](calls['ruleset'])
    for path, access in rules:
        rule = calls['path']()
        try: rule.parent_fd = os.open(path, os.O_PATH | CLOEXEC)
        except OSError: continue
        rule.allowed_access = access if os.path.isdir(path) else access & of_a_file
        calls['add'](fd, rule)
        os.close(rule.parent_fd)
    calls['restrict'](fd, 0)
    os.close(fd)


# ---- the job

def prepare(request: dict) -> None:
    "Make the interpreter look as if it had just started on the main file."
    for name in (signal.SIGINT, signal.SIGTERM): signal.signal(name, signal.SIG_DFL)
    os.environ.update(request['environment'])
    sys.path.insert(0, request['folder'])
    sys.argv[:] = ['main.py', *request['args']]
    sys.modules['random'].seed(request['seed'])
    if 'numpy' in sys.modules: sys.modules['numpy'].random.seed(request['seed'] % 2**32)
    gc.enable()


def run_main(request: dict) -> int:
    "Run the main file as `__main__`; its exit code, as the interpreter would give it."
    path, module = request['main'], type(sys)('__main__')
    module.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules['__main__'] = module
    try:
        exec(compile(request['code'], path, 'exec', dont_inherit=True), module.__dict__)
        return 0
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int): return (e.code or 0) & 0xff
        print(e.code, file=sys.stderr)
    except BaseException as e:
        if isinstance(e, MemoryError): os.write(NOTE, request['nonce'])
        show(e, e.__traceback__ and e.__traceback__.tb_next)
    return 1


def show(e: BaseException, traceback) -> None:
    "Print an exception as the interpreter would, without the frames of this file."
    try: sys.__excepthook__(type(e), e.with_traceback(traceback), traceback)
    except BaseException: pass


class CallTimeout(BaseException):
    "Raised in a tool by its alarm; not an Exception, so that `except Exception` does not swallow it."


def on_alarm(signum, frame) -> None: raise CallTimeout


def run_calls(request: dict) -> int:
    "Load a tool and call it once a set of arguments; each result is one line that begins with the job's nonce."
    import json
    nonce = request["nonce"].decode()
    def send(i: int, status: str, text: str, error: str) -> None:
        line = f'\n{nonce}[{i},"{status}",{text},{json.dumps(error)}]\n'.encode('ascii', 'backslashreplace')
        while line: line = line[os.write(RESULT, line):]
    code = run_main(request)
    function = getattr(sys.modules['__main__'], request['fn'], None)
    if code == 0 and not callable(function): send(-1, 'error', 'null', f'no function named {request["fn"]!r}')
    if code or not callable(function): return 1
    for i, arguments in enumerate(json.loads(request['calls'])):
        os.write(NOTE, b'.')
        send(i, *call_once(function, arguments, request))
    return 0


def call_once(function, arguments: dict, request: dict) -> tuple[str, str, str]:
    "One call under its alarm: status, value as JSON text, error."
    import json
    signal.signal(signal.SIGALRM, on_alarm)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    try:
        signal.setitimer(signal.ITIMER_REAL, request['call_timeout_s'])
        try: text = json.dumps(to_plain(function(**arguments)), allow_nan=False)
        finally: signal.setitimer(signal.ITIMER_REAL, 0)
    except CallTimeout: return 'timeout', 'null', f'took longer than {request["call_timeout_s"]} s'
    except MemoryError: return 'memory', 'null', 'MemoryError'
    except BaseException as e: return 'error', 'null', describe(e)
    if len(text) > request['result']: return 'error', 'null', f'result of {len(text)} characters is longer than {request["result"]}'
    return 'ok', text, ''


def describe(e: BaseException) -> str:
    try: return f'{type(e).__name__}: {e}'[:MAX_TEXT]
    except BaseException: return type(e).__name__


def to_plain(x, depth: int = 0):
    "JSON data by exact type; a tuple becomes a list, any other object its plain text."
    kind = type(x)
    if kind in (bool, int, float, str, type(None)): return x
    if depth >= MAX_DEPTH: raise ValueError(f'result nested deeper than {MAX_DEPTH}')
    if kind in (list, tuple): return [to_plain(v, depth + 1) for v in x]
    if kind is dict: return {k if type(k) is str else str(k): to_plain(v, depth + 1) for k, v in x.items()}
    return ''.join(list(str(x))[:MAX_TEXT])


if __name__ == '__main__': main(*map(int, sys.argv[1:3]))
