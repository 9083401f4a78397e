"""Lines of a web server's log, and what a model sees of them."""

import random
import re
from datetime import datetime
from urllib.parse import parse_qs, urlparse

PATHS = ["/", "/cart", "/search", "/item", "/login", "/help", "/api/v1/stock"]
AGENTS = ["Mozilla/5.0 (X11; Linux)", "curl/8.1", "Googlebot/2.1", "Mozilla/5.0 (iPhone)"]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def write_log(path, lines, seed):
    rng = random.Random(seed)
    with open(path, "w") as log:
        for _ in range(lines):
            bot = rng.random() < 0.3
            page = rng.choice(PATHS)
            agent = AGENTS[rng.choice([1, 2]) if bot else rng.choice([0, 3])]
            log.write(
                f"{rng.randrange(1, 224)}.{rng.randrange(256)}.{rng.randrange(256)}.7 - - "
                f"[{rng.randrange(1, 29):02d}/{rng.choice(MONTHS)}/2025:{rng.randrange(24):02d}:"
                f"{rng.randrange(60):02d}:{rng.randrange(60):02d} +0000] "
                f'"GET {page}?id={rng.randrange(9999)}&ref={rng.randrange(99)} HTTP/1.1" '
                f"{200 if rng.random() < 0.9 else 404} {rng.randrange(200, 90000)} "
                f'"-" "{agent}" {int(bot)}\n'
            )


FIELDS = (
    r"(?P<host>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<when>.*)\] \"(?P<request>.*)\" "
    r"(?P<status>\d+) (?P<size>\d+) \"(?P<referer>.*)\" \"(?P<agent>.*)\" (?P<bot>\d)"
)


def parse_line(line):
    match = re.match(FIELDS, line).groupdict()
    when = datetime.strptime(match["when"], "%d/%b/%Y:%H:%M:%S %z")
    url = urlparse(match["request"].split(" ")[1])
    query = parse_qs(url.query)
    return features(
        when.hour,
        when.weekday(),
        PATHS.index(url.path),
        int(query["id"][0]),
        int(match["status"]),
        int(match["size"]),
        len(match["agent"]),
    ), float(match["bot"])


def split_line(line):
    """The same from the places where the fields are known to be."""
    left, request, rest, _, _, agent, bot = line.split('"')
    stamp = left[left.index("[") + 1 :]
    day, month = int(stamp[:2]), MONTHS.index(stamp[3:6]) + 1
    path, _, query = request.split(" ")[1].partition("?")
    status, size = rest.split()
    return features(
        int(stamp[12:14]),
        (day + 13 * (month + 1) // 5) % 7,
        PATHS.index(path),
        int(query[3 : query.index("&")]),
        int(status),
        int(size),
        len(agent),
    ), float(bot)


def features(hour, weekday, page, item, status, size, agent):
    return [hour / 24, weekday / 7, page / 7, item / 1e4, status / 500, size / 1e5, agent / 30]
