def does_follow(first, second, conclusion):
    from itertools import product
    def read(text):
        words = text.split()
        i = words.index("are")
        negated = words[i + 1] == "not"
        return words[0] + " not" * negated, " ".join(words[1:i]), " ".join(words[i + 1 + negated:])
    claims = [read(text) for text in (first, second, conclusion)]
    names = sorted({name for claim in claims for name in claim[1:]})
    kinds = [dict(zip(names, bits)) for bits in product((0, 1), repeat=3)]
    def holds(world, claim):
        kind, a, b = claim
        both, only = any(x[a] and x[b] for x in world), any(x[a] and not x[b] for x in world)
        return {"All": not only, "No": not both, "Some": both, "Some not": only}[kind]
    for picks in product((0, 1), repeat=8):
        world = [x for x, pick in zip(kinds, picks) if pick]
        if all(any(x[name] for x in world) for name in names) and holds(world, claims[0]) and holds(world, claims[1]):
            if not holds(world, claims[2]):
                return "No"
    return "Yes"


# from the question alone

import re


def solve(question):
    found = re.search(r"1\. (.+)\n2\. (.+)\n\nDoes it logically follow that:\n(.+)\?$", question, re.M)
    return does_follow(*found.groups())
