def decipher(text):
    weights = dict(zip("ETAOINSHRDLUCMWFGYPBVKXJQZ", (
        12.7, 9.1, 8.2, 7.5, 7, 6.7, 6.3, 6.1, 6, 4.3, 4, 2.8, 2.8, 2.4, 2.4, 2.2, 2, 2, 1.9, 1.5, 1, .8, .2, .2, .1, .1)))
    common = set(
        "THE OF AND TO IN A IS IT THAT WAS FOR ON WITH AS BE AT BY HE SHE HIS HER YOU NOT ARE THIS FROM HAD BUT OR "
        "WHICH HAVE AN THEY ALL WERE I".split())
    def shift(k):
        return "".join(chr((ord(c) - 65 + k) % 26 + 65) if c.isalpha() else c for c in text)
    def score(plain):
        return sum(weights.get(c, 0) for c in plain) + 25 * sum(word in common for word in plain.split())
    return max((shift(k) for k in range(26)), key=score)


# from the question alone

import re


def solve(question):
    return decipher(re.search(r"cipher text: (.*)\. Provide only", question)[1])
