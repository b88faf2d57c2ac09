# MUST: descriptors, pipes and messages on their way are bounded; the machine's other processes do not notice
import array, os, socket
control(os.pipe())
held, n = [], 0
try:
    while True: held.append(os.pipe()); n += 1
except OSError as e: blocked(f'{n} pipes: {e.strerror}')
if n > 1024: pwn(f'{n} pipes')
for pair in held[:500]:
    os.set_blocking(pair[1], False)
    try:
        while True: os.write(pair[1], bytes(1 << 16))
    except OSError: pass
for pair in held[-4:]: [os.close(fd) for fd in pair]
a, b = socket.socketpair()
a.setblocking(False)
n = 0
try:
    for _ in range(20_000): a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [held[0][0]]*250))]); n += 1
    pwn(f'{n*250} descriptors on their way')
except OSError as e: blocked(f'{n*250} on their way: {e.strerror}')
