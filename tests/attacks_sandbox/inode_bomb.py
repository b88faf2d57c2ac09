# MUST: empty files, folders, links and pipes stop at the quota of files
import os
n = 0
makers = (lambda p: open(p, 'x').close(), os.mkdir, os.mkfifo, lambda p: os.symlink('x', p), lambda p: os.link('main', p))
open('main', 'x').close()
control(os.path.exists('main'))
for folder in ('.', '/tmp', '/dev/shm'):
    try:
        for i in range(C['tries']):
            makers[i % 5 if folder == '.' else i % 3](f'{folder}/n{i}')
            n += 1
    except OSError as e: blocked(f'{folder}: {n} in all, {e.strerror}')
if n > C['most']: pwn(f'{n} entries')
