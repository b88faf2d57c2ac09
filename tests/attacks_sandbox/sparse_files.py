# MUST: a file that only claims to be large is refused, or neither collected nor read into the supervisor's memory
import os
open('out.txt', 'w').write('small')
control(os.path.getsize('out.txt') == 5)
for name, size in (('huge.bin', 1 << 50), ('big.bin', 1 << 33), ('edge.bin', 1 << 22)):
    try:
        with open(name, 'wb') as f: os.truncate(f.fileno(), size)
        blocked(f'{name} is {os.path.getsize(name)}') if size == 1 << 22 else pwn(f'{name} is {os.path.getsize(name)}')
    except OSError as e: blocked(e)
