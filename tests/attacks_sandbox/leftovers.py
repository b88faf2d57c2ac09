# MUST: what a job leaves anywhere (files, semaphores, queues, sockets, folders) is not there for the next one
import os, tempfile
places = ['/tmp', '/dev/shm', '/run', '/var/tmp', '/run/shm', '/run/lock', os.environ.get('HOME', '/tmp'), tempfile.gettempdir(), '/']
made = 0
open('control', 'w').close()
control(os.path.exists('control'))
for place in places:
    for make in (lambda p: open(p, 'w').close(), os.mkdir, os.mkfifo, lambda p: os.symlink('x', p)):
        try: make(f'{place}/left-{made}'); made += 1
        except OSError: pass
import multiprocessing
try: multiprocessing.Lock(); multiprocessing.RawArray('b', 100)
except OSError: pass
blocked(f'{made} made')
