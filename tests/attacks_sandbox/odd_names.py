# MUST: names that are no UTF-8, very long, or full of control characters break neither collecting nor removing
import os
control(open('plain.csv', 'w').write('mine'))
made = 0
for name in (b'\xff\xfe.csv', b'line\nbreak.csv', b'\x1b[2J.csv', b'n'*251 + b'.csv', b'-rf.csv', b'*.csv', b'. .csv', '\u202ecsv.csv'.encode()):
    with open(name, 'wb') as f: made += f.write(b'x')
try: open('n'*256, 'w'); pwn('a name of 256 bytes')
except OSError as e: blocked(f'{made} made, {e.strerror}')
