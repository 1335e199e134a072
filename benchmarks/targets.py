"""What was promised, and whether it holds: ratios within one run, and a few plain numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.figures import Figures, Key
from benchmarks.suites import agents, calls, connecting, crowd, listing, rest, results
from benchmarks.variants import LEGACY, MODERN, PEERS, baseline_of

__all__ = ["Outcome", "Target", "judge", "targets"]


@dataclass(frozen=True)
class Target:
    """A figure, divided by that of the base unless it is a plain number, has a limit.

    With several keys the worst of them counts.
    """

    text: str
    keys: tuple[Key, ...]
    limit: float
    at_least: bool = False
    base: str | None = ""
    """The variant that is compared with; empty = the baseline of the suite; None = a plain number."""

    @property
    def wanted(self) -> str:
        """The limit, in words."""
        return f"{'>=' if self.at_least else '<='} {self.limit:g}{'' if self.base is None else 'x'}"


@dataclass(frozen=True)
class Outcome:
    """How it came out."""

    text: str
    wanted: str
    measured: float
    met: bool
    cpu: float | None
    """The same comparison by CPU time: what remains true on a machine that has other things to do."""


def judge(figures: Figures) -> list[Outcome]:
    """Compare what was measured with the targets; those without a figure are left out."""
    outcomes = []
    for target in targets():
        values = [value for key in target.keys if (value := _value(figures, target, key)) is not None]
        if not values:
            continue
        measured = min(values) if target.at_least else max(values)
        met = measured >= target.limit if target.at_least else measured <= target.limit
        ratios = [ratio for key in target.keys if (ratio := _cpu_ratio(figures, target, key)) is not None]
        cpu = max(ratios) if ratios else None
        outcomes.append(Outcome(target.text, target.wanted, measured, met, cpu))
    return outcomes


def _base(target: Target, key: Key) -> Key:
    return replace(key, variant=target.base or baseline_of(key.suite))


def _value(figures: Figures, target: Target, key: Key) -> float | None:
    return figures.median(key) if target.base is None else figures.ratio(key, _base(target, key))


def _cpu_ratio(figures: Figures, target: Target, key: Key) -> float | None:
    if target.base is None:
        return None
    _, at, size = key.metric.partition("@")
    for metric in ("cpu_us", "cpu_ms"):
        other = replace(key, metric=f"{metric}{at}{size}")
        if (ratio := figures.ratio(other, _base(target, other))) is not None:
            return ratio
    return None


def targets() -> Iterator[Target]:
    """Go through all targets."""
    yield from _stdio_calls()
    yield from _http_calls()
    yield from _waiting()
    yield from _peers()
    yield from _crowd()
    yield from _connecting()
    yield from _large()
    yield from _site()


def _stdio_calls() -> Iterator[Target]:
    for era in (MODERN, LEGACY):
        case = f"stdio {era}"
        yield _call(case, "ours-loop", "p50_us@1", 0.5)
        yield _call(case, "ours-loop", "rate@50", 4)
        for variant, p50, rate in (("ours-sync", 0.85, 2.5), ("ours-sync-uvloop", 0.7, 3)):
            yield _call(case, variant, "p50_us@1", p50)
            for level in (8, 32, 100):
                yield _call(case, variant, f"rate@{level}", rate)
        yield _call(case, "ours-async", "p50_us@1", 0.85)
        for level in (10, 50, 100):
            yield _call(case, "ours-async", f"rate@{level}", 3.5)


def _http_calls() -> Iterator[Target]:
    for body, limit in (("json", 0.5), ("sse", 0.4)):
        for era in (MODERN, LEGACY):
            case = f"http-{body} {era}"
            yield _call(case, "ours-sync", "p50_us@1", limit)
            for level in (8, 32, 100):
                yield _call(case, "ours-sync", f"rate@{level}", 4)


def _call(case: str, variant: str, metric: str, limit: float) -> Target:
    name, _, level = metric.partition("@")
    what = "calls/s" if name == "rate" else "p50"
    text = f"{case}: {variant}, {what} of {level} at once"
    return Target(text, (Key(calls.SUITE, case, variant, metric),), limit, at_least=name == "rate")


def _waiting() -> Iterator[Target]:
    for case in _fast_cases():
        key = Key(calls.WAITING, case, "ours-sync", f"p50_us@{calls.WAITERS}")
        text = f"{case}: a {calls.WAIT_MS} ms tool from {calls.WAITERS} threads, p50, against its own time"
        yield Target(text, (key,), 1.05, base=calls.TOOL)


def _peers() -> Iterator[Target]:
    for case in calls.CASES:
        for peer in PEERS:
            if peer.name == "naive":
                if case.server == "sdk":
                    continue  # most of a call is the server's own
                key = Key(calls.SUITE, case.name, "ours-sync", "p50_us@1")
                yield Target(f"{case.name}: p50 against {peer.name}", (key,), 0.01, base=peer.name)
                continue
            p50 = [Key(calls.SUITE, case.name, each, "p50_us@1") for each in ("ours-sync", "ours-async")]
            rates = [Key(calls.SUITE, case.name, "ours-async", f"rate@{level}") for level in (10, 50, 100)]
            yield Target(f"{case.name}: p50 against {peer.name}", tuple(p50), 1, base=peer.name)
            text = f"{case.name}: calls/s against {peer.name}"
            yield Target(text, tuple(rates), 1, at_least=True, base=peer.name)


def _crowd() -> Iterator[Target]:
    for case in ("stdio", "http-json"):
        text = f"{case}: a call among {crowd.CROWD}, p50"
        yield Target(text, (Key(crowd.SUITE, case, crowd.CROWD, "p50_us@1"),), 1.05)


def _connecting() -> Iterator[Target]:
    def key(case: str, metric: str) -> tuple[Key]:
        return (Key(connecting.SUITE, case, connecting.OURS, f"{metric}@100"),)

    for case in (connecting.STDIO, connecting.STDIO_PYTHON):
        text = f"100 servers, {case}: CPU time against that of their bare start"
        yield Target(text, key(case, "cpu_ms"), 1.3, base=connecting.BARE)
        yield Target(
            f"100 servers, {case}: ms that the loop stands still", key(case, "stall_ms"), 15, base=None
        )
        yield Target(f"100 servers, {case}: threads for each", key(case, "threads_each"), 0.1, base=None)
    for case in (connecting.STDIO, connecting.HTTP, connecting.HTTPS):
        yield Target(f"100 servers, {case}: KiB for each", key(case, "KiB_each"), 100, base=None)
    text = f"100 servers, {connecting.HTTPS}: TLS contexts"
    yield Target(text, key(connecting.HTTPS, "tls"), 1, base=None)


def _large() -> Iterator[Target]:
    for case in listing.CASES:
        key = Key(listing.SUITE, case, listing.OURS, "ms@10000")
        yield Target(f"listing 10,000 tools, {case}", (key,), 0.5)
        key = Key(listing.SUITE, case, listing.CACHED, "cpu_ms@10000")
        text = f"10,000 tools from the cache, {case}: against orjson.dumps"
        yield Target(text, (key,), 1.5, base=listing.DUMPS)
    for case, metric, limit in (("stdio", "ms@10MB", 0.12), ("stdio", "others_max_ms@50MB", 0.25)):
        key = Key(results.SUITE, case, results.OURS, metric)
        what = "a 10 MB result" if metric.startswith("ms") else "longest call of others during 50 MB"
        yield Target(f"{case}: {what}", (key,), limit)
    key = Key(results.SUITE, "http-json", results.OURS, "others_max_ms@50MB")
    yield Target("http-json: longest call of others during 50 MB", (key,), 0.25)


def _site() -> Iterator[Target]:
    key = Key(rest.REST, "gunicorn", rest.OURS, "rate@16")
    yield Target("REST under gunicorn: requests/s against an endpoint that does nothing", (key,), 0.7, True)
    for case, limit in ((rest.SQLITE, 0.9), (rest.POSTGRESQL, 0.75)):
        key = Key(rest.AUDIT, case, "batch", "rate@16")
        yield Target(f"audit in batches, {case}: requests/s against none", (key,), limit, True)
    for case in (rest.SQLITE, rest.POSTGRESQL):
        key = Key(agents.SUITE, case, agents.OURS, "cpu_us@1")
        yield Target(f"a run of an agent, {case}: µs of CPU time", (key,), 60_000, base=None)


def _fast_cases() -> list[str]:
    return [case.name for case in calls.CASES if case.server == "fast"]
