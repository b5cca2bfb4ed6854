"""The search: breadth first over any model, with verdicts that can be trusted."""
