# MUST: no hard link to a file outside; files with a second name are not collected
import os
open('one.csv', 'w').write('mine')
os.link('one.csv', 'two.csv')
control(os.stat('one.csv').st_nlink == 2)
for i, target in enumerate((ANSWER, '/etc/passwd', '/bin/sh', '/proc/self/mem', '/dev/null')):
    try:
        os.link(target, f'link{i}.csv')
        pwn(f'linked {target}')
    except OSError as e: blocked(f'{target}: {e.strerror}')
