# MUST: nothing of an earlier job is in this job's memory
import re
def places(first, second):
    "Where the two stand together. This job never joins them itself."
    found = []
    with open('/proc/self/maps') as f: areas = [re.match(r'(\w+)-(\w+) (\S+) \S+ \S+ \S+\s*(\S*)', line).groups() for line in f]
    with open('/proc/self/mem', 'rb', 0) as f:
        for start, end, rights, name in areas:
            if not rights.startswith('r') or name.startswith(('/', '[v')): continue
            try:
                f.seek(int(start, 16))
                data = f.read(int(end, 16) - int(start, 16))
            except (OSError, ValueError, OverflowError): continue
            at = data.find(first)
            while at >= 0:
                if data[at + len(first):at + len(first) + len(second)] == second: found.append(name or start)
                at = data.find(first, at + 1)
    return found
first, second, third = (part.encode() for part in C['parts'])
mine = second + third
control(places(second, third))
hits = places(first, second)
(pwn if hits else blocked)(f'{len(hits)} places')
