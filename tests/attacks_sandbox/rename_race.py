# MUST: outputs that change between file, link and folder until the end are collected as what they are in the end, and never followed
import os
for name in ('a', 'b'): os.makedirs(f'turn/{name}', exist_ok=True)
open('plain.csv', 'w').write('mine')
control(open('plain.csv').read() == 'mine')
if os.fork() == 0:
    os.setsid()
    i = 0
    while True:
        i += 1
        for name, target in (('out.csv', ANSWER), ('dir', os.path.dirname(ANSWER)), ('deep/x', ANSWER)):
            os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
            os.symlink(target, f'tmp{i}')
            os.rename(f'tmp{i}', name)
        open(f'tmp{i}', 'w').write('mine')
        os.rename(f'tmp{i}', 'out.csv')
while not os.path.lexists('out.csv'): pass
blocked('the race runs')
