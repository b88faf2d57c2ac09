# MUST: hooks and replaced builtins change what this job prints and does, and nothing of how its end is seen
import atexit, builtins, gc, os, signal, sys, threading
control(sys.gettrace() is None)
def loud(*args, **kwargs): raise BaseException('hook')
atexit.register(loud)
sys.excepthook = sys.unraisablehook = threading.excepthook = loud
class Stream:
    def write(self, text): raise KeyboardInterrupt
    def flush(self): raise SystemExit(0)
blocked('hooks')
gc.callbacks.append(loud)
builtins.print = builtins.open = builtins.compile = builtins.exec = loud
signal.signal(signal.SIGCHLD, loud)
os.write = os.close = os.kill = loud
sys.stdout = sys.stderr = Stream()
sys.settrace(lambda *args: None)
threading.settrace(loud)
sys.modules.clear()
raise ValueError('the end')
