"""Readings of the sensors as they come from the field: one line of text for each window."""

import datetime
import random


def write_lines(count, channels=6, points=144, seed=3):
    rng = random.Random(seed)
    begin = datetime.datetime(2024, 1, 1)
    lines = []
    for n in range(count):
        faulty = n % 2
        fields = []
        for p in range(points):
            when = begin + datetime.timedelta(seconds=60 * (n * points + p))
            values = [f"{rng.gauss(0.5 * faulty, 1.0):.4f}" for _ in range(channels)]
            fields.append(when.isoformat() + "=" + ",".join(values))
        lines.append(f"{faulty};" + "|".join(fields))
    return lines


def parse_line(line):
    """Return the label, the hours of the day and the values of a line."""
    label, _, rest = line.partition(";")
    hours, values = [], []
    for field in rest.split("|"):
        stamp, _, numbers = field.partition("=")
        when = datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S")
        hours.append(when.hour + when.minute / 60)
        values.append([float(number) for number in numbers.split(",")])
    return int(label), hours, values
