# MUST: threads count as processes do
import threading
held = threading.Event()
started = 0
first = threading.Thread(target=held.wait, daemon=True)
first.start()
control(first.is_alive())
try:
    threading.stack_size(1 << 16)
    for started in range(C['tries']): threading.Thread(target=held.wait, daemon=True).start()
    pwn(f'{started} threads')
except RuntimeError as e: blocked(f'{started} threads: {e}')
