"""The tree of a trace's spans, and its critical path. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shared.schemas.span import SpanFields
from shared.schemas.trace import CriticalSegment


@dataclass(frozen=True)
class Tree:
    """Spans by their parents. `roots` are the spans without one, then the orphans; each group in the order of starts."""

    roots: list[SpanFields]
    orphans: int
    children: Mapping[str, list[SpanFields]]

    @property
    def root(self) -> SpanFields:
        """The span that the trace is about."""
        return self.roots[0]

    def in_order(self) -> list[SpanFields]:
        """Each span after its parent, siblings in the order of their starts."""
        found: list[SpanFields] = []
        waiting = self.roots[::-1]
        while waiting:
            span = waiting.pop()
            found.append(span)
            waiting += reversed(self.children.get(span.span_id, ()))
        return found


def grown(spans: Iterable[SpanFields]) -> Tree:
    """The tree of at least one span. Of spans that are each other's ancestors the first one counts as an orphan."""
    by_id = {span.span_id: span for span in sorted(spans, key=_order)}
    children: dict[str, list[SpanFields]] = defaultdict(list)
    roots, orphans = [], []
    for span in by_id.values():
        if span.parent_span_id is None:
            roots.append(span)
        elif span.parent_span_id not in by_id:
            orphans.append(span)
        else:
            children[span.parent_span_id].append(span)
    reached = _reached([*roots, *orphans], children)
    for span in by_id.values():
        if span.span_id not in reached:
            siblings = children[span.parent_span_id or ""]
            siblings.remove(span)
            orphans.append(span)
            reached |= _reached([span], children)
    return Tree([*roots, *sorted(orphans, key=_order)], len(orphans), children)


def _reached(roots: list[SpanFields], children: Mapping[str, list[SpanFields]]) -> set[str]:
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        span = waiting.pop()
        if span.span_id not in found:
            found.add(span.span_id)
            waiting += children.get(span.span_id, ())
    return found


@dataclass
class _Frame:
    """A span on the critical path, followed from its end backwards: the time before `until_us` is not assigned yet."""

    span: SpanFields
    from_us: int
    until_us: int
    #: Its children as (end, start, span) within it, the latest end last.
    waiting: list[tuple[int, int, SpanFields]] = field(default_factory=list)


def critical_path(tree: Tree) -> list[CriticalSegment]:
    """The stretches of the root's time that it was waiting for nothing else in, span by span, in the order of time.

    The path goes from the end backwards. A parent waited for the child that ended last, and before that child began, for the one
    that had ended last by then. In between the parent worked itself. A child counts within its parent's time alone. The durations
    add up to the root's. (The method is that of CRISP, USENIX ATC 2022, and of Jaeger's trace view.)
    """
    segments: list[CriticalSegment] = []

    def add(span: SpanFields, from_us: int, until_us: int) -> None:
        if from_us < until_us:
            segments.append(CriticalSegment(span.span_id, from_us, until_us - from_us))

    frames = [_frame(tree, tree.root, tree.root.start_us, tree.root.end_us)]
    while frames:
        frame = frames[-1]
        while frame.waiting and frame.waiting[-1][0] > frame.until_us:
            frame.waiting.pop()
        if not frame.waiting:
            add(frame.span, frame.from_us, frame.until_us)
            frames.pop()
            continue
        end_us, start_us, child = frame.waiting.pop()
        add(frame.span, end_us, frame.until_us)
        frame.until_us = start_us
        frames.append(_frame(tree, child, start_us, end_us))
    return segments[::-1]


def _frame(tree: Tree, span: SpanFields, from_us: int, until_us: int) -> _Frame:
    waiting = [
        (end_us, start_us, child)
        for child in tree.children.get(span.span_id, ())
        if (start_us := max(child.start_us, from_us)) < (end_us := min(child.end_us, until_us))
    ]
    waiting.sort(key=lambda one: (one[0], -one[1], one[2].span_id))
    return _Frame(span, from_us, until_us, waiting)


def _order(span: SpanFields) -> tuple[int, str]:
    return span.start_us, span.span_id
