def reach_target(numbers, target):
    def values(part):
        if len(part) == 1:
            return {part[0]: str(part[0])}
        found = {}
        for mask in range(1, 2 ** (len(part) - 1)):
            left = values(tuple(n for i, n in enumerate(part) if mask >> i & 1))
            right = values(tuple(n for i, n in enumerate(part) if not mask >> i & 1))
            for a, x in left.items():
                for b, y in right.items():
                    found[a + b] = f"({x} + {y})"
                    found[a * b] = f"({x} * {y})"
                    found[a - b], found[b - a] = f"({x} - {y})", f"({y} - {x})"
                    if b and a % b == 0:
                        found[a // b] = f"({x} / {y})"
                    if a and b % a == 0:
                        found[b // a] = f"({y} / {x})"
        return found
    masks = sorted(range(1, 2 ** (len(numbers) - 1)), key=lambda m: abs(2 * bin(m).count("1") - len(numbers)))
    for mask in masks:
        left = values(tuple(n for i, n in enumerate(numbers) if mask >> i & 1))
        right = values(tuple(n for i, n in enumerate(numbers) if not mask >> i & 1))
        if len(left) > len(right):
            left, right = right, left
        for a, x in left.items():
            for sign, b in (("+", target - a), ("-", a - target), ("r", target + a), ("*", target // a if a and target % a == 0 else None),
                            ("/", target * a)):
                if b in right and b is not None:
                    y = right[b]
                    return {"+": f"{x} + {y}", "-": f"{x} - {y}", "r": f"{y} - {x}", "*": f"{x} * {y}", "/": f"{y} / {x}"}[sign]


# from the question alone

import re


def solve(question):
    numbers = re.search(r"numbers:? ([\d, ]+)", question)[1]
    target = re.search(r"(?:equals|make|Calculate) (\d+)\b", question)[1]
    return reach_target([int(n) for n in re.findall(r"\d+", numbers)], int(target))
