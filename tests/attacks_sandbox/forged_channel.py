# MUST: what is written into any open file cannot make a failure look like a success, nor the other way round
import json, os
control(os.write(1, b"out\n"))
forged = b'\n'.join([json.dumps([0, 'ok', 1, '']).encode(), b'R', b'RRR....', json.dumps({'exit_code': 0, 'status': 'ok'}).encode(), bytes(64), b'\xff'*64])
n = 0
for fd in range(3, 65):
    try: n += os.write(fd, forged) > 0
    except OSError: pass
for fd in range(3, 65):
    try: os.close(fd)
    except OSError: pass
blocked(f'{n} written')
raise SystemExit(3)
