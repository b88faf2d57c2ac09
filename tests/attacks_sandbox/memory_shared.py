# MUST: shared anonymous memory counts as well, though it is no process's own
import mmap, os, time
control(mmap.mmap(-1, 1 << 20))
reader, writer = os.pipe()
for i in range(C['n']):
    if os.fork() == 0:
        held = mmap.mmap(-1, C['mb'] << 20)
        for at in range(0, len(held), 4096): held[at] = 1
        os.write(writer, b'x')
        time.sleep(60)
os.close(writer)
os.set_blocking(reader, False)
end = time.time() + 1.5
n = 0
while time.time() < end and n < C['n']:
    try: n += len(os.read(reader, 99))
    except BlockingIOError: time.sleep(.02)
if n == C['n']: pwn(f'{n} processes hold {n*C["mb"]} MiB')
else: blocked(f'{n} of {C["n"]}')
