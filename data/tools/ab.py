def run_program(program):
    rules = {("A#", "#A"): [], ("B#", "#B"): [], ("A#", "#B"): ["#B", "A#"], ("B#", "#A"): ["#A", "B#"]}
    tokens, i = list(program), 0
    while i < len(tokens) - 1:
        new = rules.get((tokens[i], tokens[i + 1]))
        if new is None:
            i += 1
        else:
            tokens[i:i + 2] = new
            i = max(i - 1, 0)
    return " ".join(tokens)


# from the question alone

import re


def solve(question):
    return run_program(re.search(r"following program:\n\n(.+)$", question, re.M)[1].split())
