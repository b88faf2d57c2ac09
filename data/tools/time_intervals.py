def measure_interval(start, end, format):
    from datetime import datetime
    patterns = ["%H:%M:%S", "%H:%M", "%Y-%m-%d", "%B %d, %Y", "%m/%d/%Y", "%A, %B %d, %Y", "%a %b %d %Y", "%d %B %Y", "%Y-%m-%d (%A)",
                "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%A, %B %d, %Y at %H:%M",
                "%a %b %d %Y %H:%M:%S", "%d %B %Y, %H:%M", "%Y-%m-%d (%A) %H:%M:%S"]
    def read(text):
        for pattern in [p + zone for p in patterns for zone in ("", " %z")]:
            try:
                return datetime.strptime(text, pattern)
            except ValueError:
                pass
        raise ValueError(text)
    delta = read(end) - read(start)
    clock = f"{delta.seconds // 3600:02d}:{delta.seconds // 60 % 60:02d}" + (f":{delta.seconds % 60:02d}" if format.endswith("SS") else "")
    return f"{delta.days} days" if format == "D days" else f"{delta.days} days, {clock}" if format.startswith("D") else clock


# from the question alone

import re


def solve(question):
    times = re.search(r"(?:between|from|(?:started|departed|began) at) (.+?) (?:and (?:(?:ended|completed|arrived) at )?|to )(.+?)"
                      r"[.?] (?:Please|Express|Give|How|What)\b", question)
    return measure_interval(times[1], times[2], re.search(r" in ([DH][A-Za-z, :]+)\.$", question)[1])
