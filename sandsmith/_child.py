"""Runs inside the sandbox, never in the library: sets the limits, forks the job, watches it, reports how it ended.

`sandsmith.sandbox` starts it as `python -P -s -S child.py REQUEST REPORT RESULT` (three file descriptors), as process 1 of its
own namespaces. Process 1 runs no code of the job, cannot be killed or read by it, and takes the whole tree with it when it ends.
Only the standard library, and few imports: every job pays for them.
"""
import marshal, os, resource, select, site, sys, time

GRACE_S = .5        # how long a call may pass its limit before the child is killed from outside
TICK_S = .1         # how often orphans are reaped
MAX_DEPTH = 32      # nesting of a tool's result
MAX_TEXT = 4096     # characters of an error or of an object's text


def main(request_fd: int, report_fd: int, result_fd: int) -> None:
    with open(request_fd, 'rb') as f: request = marshal.load(f)
    if request['uid'] is None: allow_inspection(False)  # the job will have the same user
    note_r, note_w = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(report_fd)
        os.close(note_r)
        run_job(request, note_w, result_fd)
    for fd in (result_fd, 0, 1): os.close(fd)  # note_w stays open, so that the job cannot end the notes
    ending = watch_job(pid, note_r, request)
    try: os.killpg(pid, 9)  # without namespaces nothing else would reach the job's children
    except OSError: pass
    report = (*ending, int((time.monotonic() - started)*1e6))
    os.write(report_fd, ' '.join(str(int(x)) for x in report).encode() + b'\n')
    os._exit(0)


def allow_inspection(is_allowed: bool) -> None:
    "Whether processes of the same user may trace this one and open its /proc/PID/{environ,mem,fd}; a fork inherits it."
    import ctypes
    if ctypes.CDLL(None).prctl(4, int(is_allowed), 0, 0, 0): raise OSError('prctl(PR_SET_DUMPABLE) failed')


def watch_job(pid: int, note_fd: int, request: dict) -> tuple[bool, bool, bool, int, int]:
    "Wait for the job, kill it at its limit, reap orphans. -> is ready, timed out, had MemoryError, exit code (negative: signal), peak KiB."
    os.set_blocking(note_fd, False)
    call_s, end = request['call_timeout_s'], time.monotonic() + request['timeout_s']
    call_end = end if call_s is None else time.monotonic() + request['load_s']
    is_ready = timed_out = is_memory = False
    poller = select.poll()
    for fd in (os.pidfd_open(pid), note_fd): poller.register(fd, select.POLLIN)
    while True:
        left = min(end, call_end) - time.monotonic()
        if left <= 0 and not timed_out:
            timed_out = True
            os.kill(pid, 9)
        poller.poll(1000*(TICK_S if timed_out else max(0, min(TICK_S, left))))
        ending = reap(pid)
        notes = read_notes(note_fd)
        if b'.' in notes and call_s is not None: call_end = time.monotonic() + call_s + GRACE_S
        is_ready, is_memory = is_ready or b'R' in notes, is_memory or request['nonce'].encode() in notes
        if ending: return is_ready, timed_out, is_memory, *ending


def reap(pid: int) -> tuple[int, int] | None:
    "Collect whatever has ended; exit code and peak KiB when the job's first process has."
    while True:
        try: done, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError: return None
        if done == pid: return os.waitstatus_to_exitcode(status), usage.ru_maxrss
        if not done: return None


def read_notes(fd: int) -> bytes:
    "What the job noted: R it is set up, . a call begins, the nonce: MemoryError. After R the job can write here what it likes."
    try: return os.read(fd, 4096)
    except BlockingIOError: return b''


def run_job(request: dict, note_fd: int, result_fd: int) -> None:
    "The forked job: limits, then the code. Never returns."
    code = 1
    try:
        os.setsid()
        if request['uid'] is None: allow_inspection(True)
        set_limits(request)
        for fd in (note_fd, result_fd): os.set_inheritable(fd, False)
        os.chdir(request['folder'])
        packages = [p for p in os.environ.get('PYTHONPATH', '').split(':') if p]
        sys.path[:] = [request['folder'], *(p for p in sys.path if p not in packages), *packages]
        sys.prefix = sys.exec_prefix = request['prefix']
        sys.argv[:] = ['main.py', *request['args']]
        site.setquit()
        site.sethelper()
        for out in (sys.stdout, sys.stderr): out.reconfigure(errors='backslashreplace', line_buffering=True)  # type: ignore[union-attr]
        os.write(note_fd, b'R')
        if request['calls'] is None:
            os.close(result_fd)
            code = run_main(request, note_fd)
        else: code = run_calls(request, note_fd, result_fd)
    except BaseException as e: show(e, None)
    finally:
        for stream in (sys.stdout, sys.stderr):
            try: stream.flush()
            except BaseException: pass
        os._exit(code)


def set_limits(request: dict) -> None:
    "Resource limits, hard, then the switch to the job's own user, after which they cannot be raised."
    with open('/proc/self/oom_score_adj', 'w') as f: f.write('1000')
    for name, value in (('AS', request['memory']), ('FSIZE', request['file']), ('NPROC', request['n_processes']),
                        ('NOFILE', 1024), ('CORE', 0), ('MEMLOCK', 0), ('MSGQUEUE', 0)):
        if value is None: continue
        limit = getattr(resource, f'RLIMIT_{name}')
        hard = resource.getrlimit(limit)[1]
        if hard != resource.RLIM_INFINITY: value = min(value, hard)
        resource.setrlimit(limit, (value, value))
    if request['uid'] is not None:
        os.setgroups([])
        os.setresgid(*[request['uid']]*3)
        os.setresuid(*[request['uid']]*3)


def run_main(request: dict, note_fd: int) -> int:
    "Run the main file as `__main__`; its exit code, as the interpreter would give it."
    path, nonce, module = request['main'], request['nonce'].encode(), type(sys)('__main__')
    module.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules['__main__'] = module
    try:
        with open(path, 'rb') as f: source = f.read()
        exec(compile(source, path, 'exec', dont_inherit=True), module.__dict__)
        return 0
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int): return (e.code or 0) & 0xff
        print(e.code, file=sys.stderr)
    except BaseException as e:
        if isinstance(e, MemoryError): os.write(note_fd, nonce)
        show(e, e.__traceback__ and e.__traceback__.tb_next)
    return 1


def show(e: BaseException, traceback) -> None:
    "Print an exception as the interpreter would, without the frames of this file."
    try: sys.__excepthook__(type(e), e.with_traceback(traceback), traceback)
    except BaseException: pass


class CallTimeout(BaseException):
    "Raised in a tool by its alarm; not an Exception, so that `except Exception` does not swallow it."


def on_alarm(signum, frame) -> None: raise CallTimeout


def run_calls(request: dict, note_fd: int, result_fd: int) -> int:
    "Load a tool and call it once a set of arguments; each result is one line that begins with the job's nonce."
    import json
    def send(i: int, status: str, text: str, error: str) -> None:
        line = f'\n{request["nonce"]}[{i},"{status}",{text},{json.dumps(error)}]\n'.encode('ascii', 'backslashreplace')
        while line: line = line[os.write(result_fd, line):]
    code = run_main(request, note_fd)
    function = getattr(sys.modules['__main__'], request['fn'], None)
    if code == 0 and not callable(function): send(-1, 'error', 'null', f'no function named {request["fn"]!r}')
    if code or not callable(function): return 1
    for i, arguments in enumerate(json.loads(request['calls'])):
        os.write(note_fd, b'.')
        send(i, *call_once(function, arguments, request))
    return 0


def call_once(function, arguments: dict, request: dict) -> tuple[str, str, str]:
    "One call under its alarm: status, value as JSON text, error."
    import json, signal
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


if __name__ == '__main__': main(*map(int, sys.argv[1:4]))
