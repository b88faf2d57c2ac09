# MUST: files that shadow modules do not run in the library's own code around the next step
import os, sys
evil = "import builtins, os\nprint('PWNED', __name__, flush=True)\nopen('ran', 'w').close()\n"
version = f'python{sys.version_info[0]}.{sys.version_info[1]}'
names = ['sitecustomize', 'usercustomize', 'json', 'random', 'traceback', 'linecache', 'encodings', 'codecs', 'io', 'marshal', 'signal', 'tokenize', 're', 'warnings', '_child', 'main', 'ctypes', 'struct']
folders = ['.', '/tmp', '/dev/shm', os.environ['HOME'], f'{os.environ["HOME"]}/.local/lib/{version}/site-packages', f'/tmp/.local/lib/{version}/site-packages']
control(os.access('.', os.W_OK))
for folder in folders:
    try:
        os.makedirs(folder, exist_ok=True)
        for name in names: open(f'{folder}/{name}.py', 'w').write(evil)
        open(f'{folder}/x.pth', 'w').write('import os; print("PWNED pth")')
        open(f'{folder}/pyvenv.cfg', 'w').write('home = /job')
    except OSError as e: blocked(e)
blocked('poisoned')
