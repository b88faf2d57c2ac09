# MUST: a tool that finds the channel and writes into it can make up nothing but its own values; there are as many results as calls
import gc, os, sys
CONTROL = 'a tool'
def secrets():
    frame = sys._getframe()
    while frame:
        yield frame.f_locals
        frame = frame.f_back
    yield from (o for o in gc.get_objects() if type(o) is dict)
def tool(i):
    if C.get('search'): return any(TOKEN[::-1] == v[::-1] for o in secrets() for v in list(o.values()) if type(v) is str)
    request = next(s['request'] for s in secrets() if 'request' in s)
    for line in (f'[{i + 1},"ok",99,""]', f'[{i + 1},"ok",NaN,""]', f'[{10**9},"ok",1,""]', '[-1,"ok",1,""]', '[-1,"killed",1,"x"]', '[true,"ok",1,""]', f'[{i},"ok",{"[" * 9999}]'):
        os.write(3, b'\n' + request['nonce'] + line.encode() + b'\n')
    os.write(4, b'RRRR' + request['nonce']*3 + b'.'*C['dots'])
    return i
