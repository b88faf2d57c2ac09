# MUST: many files, each below the limit of one, stop at the quota of the folder
import os
total = 0
def write(i):
    global total
    with open(f'f{i}', 'wb', 0) as f:
        for _ in range(2): total += f.write(bytes(1 << 20))
control(write(0) is None)
try:
    for i in range(1, 100): write(i)
    pwn(f'{total >> 20} MiB')
except OSError as e: (pwn if total >> 20 > C['most_mb'] else blocked)(f'{total >> 20} MiB, {e.strerror}')
