"""Groups of groups: which nodes each has, and which of two is nearer to a node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush


@dataclass
class Groups:
    """The groups of an inventory. `all` holds every group and is not among them.

    parents: for each group, in the order of the file, the groups that it is directly in.
    nodes: for each group, the nodes named in it directly.
    """

    parents: dict[str, dict[str, None]] = field(default_factory=dict)
    nodes: dict[str, dict[str, None]] = field(default_factory=dict)

    def declare(self, name: str) -> None:
        """Make the group known; the first time decides its place in the order of the file."""
        self.parents.setdefault(name, {})
        self.nodes.setdefault(name, {})

    def circles(self) -> list[list[str]]:
        """The circles of groups, each from a group by way of its parents back to itself.

        One parent is taken off each of them, so that no circle is left afterwards.
        """
        found = []
        while left := self._without_order():
            path: list[str] = [next(iter(left))]
            while True:
                parent = next(parent for parent in self.parents[path[-1]] if parent in left)
                if parent in path:
                    break
                path.append(parent)
            found.append(path[path.index(parent) :] + [parent])
            del self.parents[path[-1]][parent]
        return found

    def _without_order(self) -> dict[str, None]:
        """The groups that are below a circle of groups, or in it."""
        ordered = set(self._from_the_top())
        return {name: None for name in self.parents if name not in ordered}

    def _from_the_top(self) -> list[str]:
        """Groups after all their parents."""
        missing = {name: len(parents) for name, parents in self.parents.items()}
        children: dict[str, list[str]] = {name: [] for name in self.parents}
        for name, parents in self.parents.items():
            for parent in parents:
                children[parent].append(name)
        ordered = [name for name, number in missing.items() if not number]
        for name in ordered:
            for child in children[name]:
                missing[child] -= 1
                if not missing[child]:
                    ordered.append(child)
        return ordered

    def depths(self) -> dict[str, int]:
        """How far below `all` each group is, by the longest way, as Ansible counts."""
        depths: dict[str, int] = {}
        for name in self._from_the_top():
            depths[name] = 1 + max((depths[parent] for parent in self.parents[name]), default=0)
        return depths

    def members(self) -> dict[str, dict[str, None]]:
        """The nodes of each group, those of its children among them."""
        members = {name: dict(nodes) for name, nodes in self.nodes.items()}
        for name in reversed(self._from_the_top()):
            for parent in self.parents[name]:
                members[parent].update(members[name])
        return members

    def above(self, names: Iterable[str]) -> set[str]:
        """The groups and all that they are in."""
        found = set(names)
        left = list(found)
        while left:
            new = self.parents[left.pop()].keys() - found
            found |= new
            left += new
        return found

    def by_file(self, names: Iterable[str]) -> tuple[str, ...]:
        """A node's groups, nearest first: a child before its parents, else the later in the file.

        names: the groups that the node is directly in.
        """
        places = {name: place for place, name in enumerate(self.parents)}
        around = self.above(names)
        children_left = dict.fromkeys(around, 0)
        for name in around:
            for parent in self.parents[name]:
                children_left[parent] += 1
        ready = [(-places[name], name) for name in around if not children_left[name]]
        heapify(ready)
        ordered = []
        while ready:
            _, name = heappop(ready)
            ordered.append(name)
            for parent in self.parents[name]:
                children_left[parent] -= 1
                if not children_left[parent]:
                    heappush(ready, (-places[parent], parent))
        return tuple(ordered)

    def by_ansible(
        self, names: Iterable[str], depths: Mapping[str, int], priorities: Mapping[str, int]
    ) -> tuple[str, ...]:
        """A node's groups, nearest first: the deepest, then by priority, then the last by name.

        names: the groups that the node is directly in.
        priorities: of `ansible_group_priority`, by group; 1 where nothing is said.
        """

        def rank(name: str) -> tuple[int, int, str]:
            return depths[name], priorities.get(name, 1), name

        return tuple(sorted(self.above(names), key=rank, reverse=True))
