def make_24(numbers):
    from fractions import Fraction
    def search(items):
        if len(items) == 1:
            return items[0][1] if items[0][0] == 24 else None
        for i, (a, x) in enumerate(items):
            for j, (b, y) in enumerate(items):
                if i != j:
                    rest = [item for k, item in enumerate(items) if k not in (i, j)]
                    options = [(a + b, f"({x} + {y})"), (a - b, f"({x} - {y})"), (a * b, f"({x} * {y})")]
                    if b:
                        options.append((a / b, f"({x} / {y})"))
                    for option in options:
                        found = search(rest + [option])
                        if found:
                            return found
    return search([(Fraction(n), str(n)) for n in numbers])


# from the question alone

import re


def solve(question):
    return make_24([int(n) for n in re.search(r"Make 24 using ([\d, ]+)\.", question)[1].split(", ")])
