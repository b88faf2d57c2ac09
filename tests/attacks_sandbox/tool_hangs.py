# MUST: a call ends at its own limit whatever it does with the alarm; the others are not touched
import os, signal, sys, threading, time
def spin():
    while True: pass
def nap():
    while True: time.sleep(.001)
def tool(how):
    if how == 'blocked': signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); spin()
    if how == 'ignored': signal.signal(signal.SIGALRM, signal.SIG_IGN); spin()
    if how == 'disarmed': signal.setitimer(signal.ITIMER_REAL, 0); spin()
    if how == 'caught':
        while True:
            try: spin()
            except BaseException: pass
    if how == 'stopped': os.kill(os.getpid(), signal.SIGSTOP)
    if how == 'child': os.fork() or time.sleep(60); os.wait()
    if how == 'thread': threading.Thread(target=nap).start(); nap()
    if how == 'str':
        class Slow:
            def __str__(self): spin()
        return Slow()
    if how == 'exit': os._exit(0)
    if how == 'two': os.fork(); return 'two'
    return how
