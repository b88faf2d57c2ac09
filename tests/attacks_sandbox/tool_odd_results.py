# MUST: only finite JSON data of bounded size and depth comes back; everything else is one failed call
import sys
class Text(str):
    def __str__(self): return self
    def __eq__(self, other): return True
    __hash__ = str.__hash__
class Bad:
    def __str__(self): raise SystemExit(0)
    __repr__ = __str__
class Key:
    def __str__(self): return Text('key')
class Error(Exception):
    def __str__(self): raise MemoryError
def tool(how):
    if how == 'recursion': return tool(how)
    deep = []
    for _ in range(100_000): deep = [deep]
    shared = [0]
    for _ in range(30): shared = [shared, shared]
    loop = []
    loop.append(loop)
    values = dict(nan=float('nan'), large=1e308*10, negative=-float('inf'), inside={'a': [{'b': float('nan')}]}, deep=deep, loop=loop, digits=10**5000, shared=shared, bad=Bad(), badkey={Bad(): 1})
    if how == 'error': raise Error
    if how == 'base': raise BaseException('base')
    if how == 'surrogate': return ['\ud800', {'\udfff': Text('x')}]
    if how == 'key': return {Key(): 1}
    if how == 'text': return Text('x'*10)
    return values[how]
