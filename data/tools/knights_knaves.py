def tell_roles(names, statements, roles):
    from itertools import product
    for marks in product((True, False), repeat=len(names)):
        world = dict(zip(names, marks))
        if all(bool(eval(text, {}, dict(world))) == mark for text, mark in zip(statements, marks)):
            return {name: roles[0 if mark else 1] for name, mark in world.items()}


# from the question alone

import re


def read_question(question):
    truth, lie = re.search(r"inhabited only by (\w+)s and (\w+)s\.", question).groups()
    listed, said = re.search(r"inhabitants: (.+?)\.(.+) So who is", question).groups()
    said = said.replace("it is not the case that", "NOT").replace("if and only if", "IFF")
    chunks = [re.findall(r"(\w+) is an? (\w+)|(NOT|IFF|\bif\b|\bthen\b|\band\b|\bor\b|[()])", chunk) for chunk in said.split(".")]
    return re.split(r", and |, ", listed), [read_formula(parts, truth) for parts in chunks if parts], [truth, lie]

def read_formula(parts, truth):
    def one():
        name, role, word = parts.pop(0)
        if name:
            return name if role == truth else f"(not {name})"
        if word == "NOT":
            return f"(not {one()})"
        if word == "if":
            condition = one()
            parts.pop(0)
            return f"((not {condition}) or {one()})"
        inside = read_formula(parts, truth)
        parts.pop(0)
        return inside
    text = one()
    while parts and parts[0][2] in ("and", "or", "IFF"):
        word = {"IFF": "=="}.get(parts[0][2], parts.pop(0)[2])
        text = f"{text} {word} {one()}"
    return f"({text})"


def solve(question):
    return tell_roles(*read_question(question))
