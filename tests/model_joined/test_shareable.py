"""What a request is told that it may share leaves it something to compute."""

from tenure.core.blocks.sequence import new_sequence
from tenure.core.blocks.values import LeaseOpened
from tenure.core.cache import CacheState, servable_prefix_blocks, transition
from tenure.core.joined.values import CacheView
from tenure.model_checks.joined.scopes import BOUNDS
from tenure.model_checks.rows.stage import State
from tenure.spec.joined.rules import shareable_prefix_leaves_a_token
from tests.model_rows.runs import wander


def opened(tokens: int) -> CacheView:
    """A request of so many tokens, blocks of two."""
    config = BOUNDS["whole-prompt"].make().cores.cache(0).cache.config
    lease = LeaseOpened(new_sequence("a", list(range(1, tokens + 1)), 4, 2))
    return transition(CacheState.initial(config), lease).state.view()


def test_x01_whole_prompt_to_be_shared_is_found() -> None:
    """No step announces a hit behind which nothing is computed, so nobody is ever handed its rows."""
    found = shareable_prefix_leaves_a_token(opened(4), "a", 2)

    assert found is not None
    assert "'a', which has 4 tokens" in found


def test_x01_prefix_that_leaves_a_token_is_none() -> None:
    """One token behind whole blocks, or a block of the prompt's own, is enough."""
    assert [None, None, None] == [
        shareable_prefix_leaves_a_token(opened(tokens), "a", blocks) for tokens, blocks in ((4, 1), (5, 2), (4, 0))
    ]


def test_x01_second_request_of_a_visible_prompt_shares_all_but_the_last_block() -> None:
    """The scope in which a whole prompt is visible when another of the same tokens comes: it shares none of one."""
    model = BOUNDS["whole-prompt"].make()
    shareable: list[int] = []
    for state, _, taken in wander(model, seed=3, steps=2500):
        before = model.cores.cache(state.core)
        after = taken.state
        assert isinstance(after, State)
        now = model.cores.cache(after.core)
        if before.seen.blocks.index and len(now.seen.blocks.leases) > len(before.seen.blocks.leases):
            (new,) = set(now.seen.blocks.leases) - set(before.seen.blocks.leases)
            shareable.append(servable_prefix_blocks(now.cache, new))

    assert shareable
    assert {0} == set(shareable)
