# MUST: the calls of 32-bit programs and of x32 do not get past the filter
import ctypes, mmap, os, platform, signal
def died_of(act):
    child = os.fork()
    if child == 0:
        act()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
control(died_of(lambda: None) == 0)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b'\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3') # getpid by int 0x80
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
ways = {'x32': lambda: ctypes.CDLL(None).syscall(0x40000000 | 39), 'int 0x80': function} if platform.machine() == 'x86_64' else {}
for name, act in ways.items(): (blocked if (ending := died_of(act)) == signal.SIGSYS else pwn)(f'{name}: {ending}')
blocked(f'{len(ways)} ways')
