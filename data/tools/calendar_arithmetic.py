def answer_calendar(task, dates, weekday, number):
    import calendar
    from datetime import date, timedelta
    names, days = list(calendar.day_name), [date.fromisoformat(d) for d in dates]
    if task == "is_leap_year":
        return "Yes" if calendar.isleap(number) else "No"
    if task == "weekday_of_date_from_first_date":
        return names[(names.index(weekday) + days[0].timetuple().tm_yday - 1) % 7]
    if task.startswith("count"):
        span = [days[0] + timedelta(i) for i in range((days[1] - days[0]).days + 1)]
        return sum(d.weekday() < 5 if task == "count_business_days" else names[d.weekday()] == weekday for d in span)
    if task == "recurring_event_day":
        last = calendar.monthrange(days[0].year, days[0].month)[1]
        found = [d for d in range(1, last + 1) if names[days[0].replace(day=d).weekday()] == weekday]
        place = number - 1 if number > 0 else -1
        return found[place] if place < len(found) else -1
    return names[(days[0] + timedelta(number)).weekday()]


# from the question alone

import re


import calendar
from datetime import date

def read_question(question):
    months, days = "|".join(calendar.month_name[1:]), "|".join(calendar.day_name)
    ending = r" (?:Answer|Provide|State|Give|Reply|Write|Respond|Name the day of the week in full|Express)\b.*"
    text = re.sub(ending, "", question, flags=re.S)
    if "leap year" in text:
        return "is_leap_year", [], "", int(re.search(r"\d{4}", text)[0])
    ordinal = re.search(rf"(first|second|third|fourth|last) ({days})", text)
    if ordinal:
        month, y = re.search(rf"({months}) (\d{{4}})", text).groups()
        return ("recurring_event_day", [f"{y}-{list(calendar.month_name).index(month):02d}-01"], ordinal[2],
                {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}[ordinal[1]])
    found = re.findall(rf"({months}) (\d+)(?!\d)(?:, (\d{{4}}))?", text)
    year = next((y for _, _, y in found if y), "2022")
    dates = [str(date(int(y or year), list(calendar.month_name).index(m), int(d))) for m, d, y in found]
    dates = dates or [f"{y}-{m}-{d}" for m, d, y in re.findall(r"(\d\d)/(\d\d)/(\d{4})", text)]
    named = re.findall(rf"\b({days})", text)
    if "business days" in text or "excluding weekends" in text:
        return "count_business_days", dates, "", 0
    counted = re.search(rf"(?:How many|occurrences of|times does) ({days})", text)
    if counted:
        return "count_days", dates, counted[1], 0
    jump = re.search(r"(\d+)(?: days|-day)", text)
    if jump:
        return "weekday_offset", dates, "", int(jump[1]) * (-1 if re.search("ago|before|backward", text) else 1)
    if named and ("January 1" in text or "first day of the year" in text):
        return "weekday_of_date_from_first_date", dates[-1:], named[0], 0
    return "weekday_of_date", dates, "", 0


def solve(question):
    return answer_calendar(*read_question(question))
