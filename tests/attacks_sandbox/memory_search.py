# MUST: nothing of an earlier job is in this job's memory
import gc, os, re
text = C['halves'][0] + C['halves'][1]
mine = ('own-' + text[::-1]).encode()
def found_in_memory(what):
    with open('/proc/self/maps') as f: areas = [re.match(r'(\w+)-(\w+) r\S+ \S+ \S+ \S+\s*(\S*)', line).groups() for line in f if ' r' in line]
    with open('/proc/self/mem', 'rb', 0) as f:
        for first, last, name in areas:
            if name.startswith('/') or name in ('[vvar]', '[vsyscall]', '[vvar_vclock]'): continue
            try:
                f.seek(int(first, 16))
                data = f.read(int(last, 16) - int(first, 16))
            except (OSError, ValueError, OverflowError): continue
            if data.count(what): yield name or first
control(list(found_in_memory(mine)) != [])
what = ''.join(C['halves']).encode()
del mine
needle = what[:4], what[4:]
places = [p for p in found_in_memory(what)]
others = [o for o in gc.get_objects() if isinstance(o, dict) and any(isinstance(v, str) and C['halves'][0] + C['halves'][1] in v for v in list(o.values())) and o is not globals()]
blocked(f'{len(places)} places, {len(others)} objects')
print('PLACES', len(places))
