# MUST: processes that have stopped one another, and themselves, end at the wall limit
import os, signal
child = os.fork()
if child == 0:
    while True: signal.pause()
os.kill(child, signal.SIGSTOP)
control(os.waitpid(child, os.WUNTRACED)[0] == child)
blocked('the child is stopped')
os.killpg(0, signal.SIGSTOP)
pwn('went on')
