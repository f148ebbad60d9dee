"""How a composed oracle searches: its members' parts in flat arrays, rounds of many instances in lockstep, branching."""
