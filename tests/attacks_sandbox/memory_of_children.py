# MUST: the memory of all processes together is bounded, though each of them stays below its own limit
import os, time
control(bytearray(8 << 20))
reader, writer = os.pipe()
for i in range(C['n']):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20)*C['mb'])
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
