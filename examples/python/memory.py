"""Where memory goes: run as it is, or under ``stepwatch run --memory``."""

import stepwatch


def load(count: int) -> list[bytes]:
    return [bytes(10_000) for _ in range(count)]


def main() -> None:
    kept = []
    with stepwatch.memory() as mem:
        for step in stepwatch.steps(range(50)):
            with stepwatch.section("load"):
                batch = load(200)
            if step % 2:
                kept.append(batch)
    print(f"peak {mem.peak / 1e6:.1f} MB; {mem.blocks} blocks, {mem.allocated / 1e6:.1f} MB in all")
    for site in mem.top(3, by="live"):
        print(f"{site['live'] / 1e6:6.1f} MB stay from {site['function']}, line {site['line']}")


if __name__ == "__main__":
    main()
