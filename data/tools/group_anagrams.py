def group_anagrams(words):
    groups = {}
    for word in words:
        groups.setdefault("".join(sorted(word)), []).append(word)
    return list(groups.values())


# from the question alone

import re


def solve(question):
    return group_anagrams(re.findall(r'"(\w+)"', question.split("into anagrams:")[1]))
