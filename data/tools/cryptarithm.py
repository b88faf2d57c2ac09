def solve_cryptarithm(words, result):
    weights, leading = {}, {w[0] for w in (*words, result)}
    for sign, word in [(1, w) for w in words] + [(-1, result)]:
        for i, letter in enumerate(reversed(word)):
            weights[letter] = weights.get(letter, 0) + sign * 10 ** i
    letters = sorted(weights, key=lambda c: -abs(weights[c]))
    room = [9 * sum(abs(weights[c]) for c in letters[i:]) for i in range(len(letters) + 1)]
    def place(i, total, free, found):
        if abs(total) > room[i]:
            return None
        if i == len(letters):
            return found if total == 0 else None
        for digit in free:
            if digit or letters[i] not in leading:
                done = place(i + 1, total + digit * weights[letters[i]], free - {digit}, {**found, letters[i]: digit})
                if done:
                    return done
    return place(0, 0, frozenset(range(10)), {})


# from the question alone

import re


def solve(question):
    lines = re.findall(r"^[+ ]*([A-Z]+)$", question, re.M)
    return solve_cryptarithm(lines[:-1], lines[-1])
