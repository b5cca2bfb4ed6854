"""What a replay counts while it runs."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Everything but times.

    Attributes:
        requests: requests that finished.
        bad_requests: requests, or whole files, that could not be replayed and were left out.
        admitted: requests admitted at least once; the prompt and hit figures are theirs.
        prompt_tokens: tokens of their prompts.
        prompt_blocks: blocks of their prompts, a partial last one included.
        output_tokens: tokens generated.
        hit_tokens: tokens found in the cache at first admission.
        hit_blocks: blocks found in the cache at first admission.
        hit_tokens_after_preemption: tokens found at later admissions. They were mostly computed by the request itself,
            so they are no sign of sharing and are counted apart.
        preemptions: how often a running request had to give up its blocks for want of capacity.
        chosen_preemptions: how often one was preempted because a draw chose it.
        aborts: requests that were aborted.
        steps: engine steps.
        evicted_blocks: copies evicted, duplicates of a hash included.
        stored_events: Stored events published.
        stored_hashes: hashes in them.
        removed_events: Removed events published.
        removed_hashes: hashes in them.
        peak_active_blocks: the most blocks in use at the same time.
        transitions: events given to the machine.
        checked_transitions: those of them after which every rule was checked.
    """

    requests: int = 0
    bad_requests: int = 0
    admitted: int = 0
    prompt_tokens: int = 0
    prompt_blocks: int = 0
    output_tokens: int = 0
    hit_tokens: int = 0
    hit_blocks: int = 0
    hit_tokens_after_preemption: int = 0
    preemptions: int = 0
    chosen_preemptions: int = 0
    aborts: int = 0
    steps: int = 0
    evicted_blocks: int = 0
    stored_events: int = 0
    stored_hashes: int = 0
    removed_events: int = 0
    removed_hashes: int = 0
    peak_active_blocks: int = 0
    transitions: int = 0
    checked_transitions: int = 0
