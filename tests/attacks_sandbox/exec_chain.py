# MUST: a chain of processes that exec and replace one another faster than they can be listed ends with the job
import os, time
step = 'echo x >> beat; (exec sh ./step &) ; exec true'
open('step', 'w').write(step)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        os.execv('/bin/sh', ['sh', './step'])
while not os.path.exists('beat') or os.path.getsize('beat') < 20: time.sleep(.01)
control(True)
blocked('the chain runs')
if C.get('stay'): time.sleep(60)
