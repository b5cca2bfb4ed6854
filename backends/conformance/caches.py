"""The kit that anybody runs on a cache of their own: whether it says what the row machine says, or keeps its rows.

`check_cache` is a function and needs no test runner; `tenure conform-cache` is the command around it, and
`tenure.backends.conformance.testing` has a class for pytest.
"""

from tenure.backends.conformance.cache_registry import CACHE_CHECKS, CacheCapability, CacheCheck, cache_claims
from tenure.backends.conformance.cache_runner import check_cache
from tenure.backends.conformance.facade_pair import CacheBench

__all__ = ["CACHE_CHECKS", "CacheBench", "CacheCapability", "CacheCheck", "cache_claims", "check_cache"]
