"""What the nodes, states and features of a random field are called."""

from typing import NamedTuple


class FieldNames(NamedTuple):
    """What is called what. nodes: None for their numbers. states: of a node. features, edge_features: with the constant one."""

    unit: str
    nodes: list[str] | None
    states: list[str]
    features: list[str]
    edge_features: list[str]

    def node(self, v: int) -> str:
        """A node in the name of a feature or a label."""
        return f"node {v}" if self.nodes is None else self.nodes[v]

    def state(self, v: int, state: int) -> str:
        """A state of a node, as a label."""
        return self.states[state] if self.nodes is None else f"{self.nodes[v]} {self.states[state]}"
