def evaluate_bitwise(expression):
    import re
    if not re.fullmatch(r"[0-9a-fA-Fx+*<>() -]+", expression):
        raise ValueError("not a bitwise expression")
    return hex(eval(expression))


# from the question alone


def solve(question):
    return evaluate_bitwise(question.strip().splitlines()[-1])
