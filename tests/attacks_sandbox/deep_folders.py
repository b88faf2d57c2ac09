# MUST: a folder deeper than any path can say, and one without permissions, neither stop the next job nor stay behind
import os
os.makedirs('a/b')
control(os.path.isdir('a/b'))
n = 0
try:
    for n in range(C['depth']):
        os.mkdir('d'*40)
        os.chdir('d'*40)
    open('x.csv', 'w').write('deep')
except OSError as e: blocked(e)
blocked(f'{n} deep')
