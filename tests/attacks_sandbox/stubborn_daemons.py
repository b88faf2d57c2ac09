# MUST: daemons in sessions of their own, that ignore every signal and have left the folder, are dead when the job is reported over
import os, signal, time
folder = os.open('.', os.O_DIRECTORY)
reader, writer = os.pipe()
for n in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        for s in range(1, 65):
            try: signal.signal(s, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.chdir('/')
        while True:
            beat = os.open('beat', os.O_CREAT | os.O_APPEND | os.O_WRONLY, dir_fd=folder)
            os.write(beat, b'x')
            os.close(beat)
            os.write(writer, b'x')
            time.sleep(.02)
control(all(os.read(reader, 1) for _ in range(8)))
blocked('daemons run')
