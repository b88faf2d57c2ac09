# MUST: a channel that is filled with gigabytes costs the supervisor no memory, and each call still has one result
import os
def tool(i):
    if i == 1:
        for _ in range(400): os.write(3, b'x'*(1 << 20))
    if i == 2: os.close(3)
    if i == 3:
        for _ in range(2000): os.write(4, b'.R'*2048)
    if i == 4: return 'y'*(1 << 26)
    return i
