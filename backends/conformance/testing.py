"""The kit as classes for pytest, one test a check. pytest is imported when a test runs.

from tenure.backends.conformance.testing import DeviceConformance

class TestMyDevice(DeviceConformance):
    expected_failures = {"D9.close-ends-threads": "the driver keeps a thread of its own"}

    def make_device(self, options):
        return MyDevice()
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, ClassVar

from tenure.backends.capabilities import Capability
from tenure.backends.conformance.bench import Bench, Options
from tenure.backends.conformance.caches import CACHE_CHECKS, CacheCapability, check_cache
from tenure.backends.conformance.registry import CHECKS
from tenure.backends.conformance.report import Report, Result, Verdict
from tenure.backends.conformance.runner import TIMEOUT_S, check_device
from tenure.backends.device import Device


class _Conformance:
    """What both classes of tests have.

    Attributes:
        seed: of all that is drawn.
        expected_failures: by check, why it fails; one that passes after all fails its test.
        timeout_s: seconds that one wait, or reply, may take.
    """

    checks: ClassVar[Collection[str]]
    seed: ClassVar[int] = 0
    expected_failures: ClassVar[Mapping[str, str]] = {}
    timeout_s: ClassVar[float] = TIMEOUT_S

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Make one test of each check."""
        if "check_id" in metafunc.fixturenames:
            metafunc.parametrize("check_id", sorted(self.checks))

    def _holds(self, run: Callable[..., Report], check_id: str) -> None:
        """Run one check, and tell pytest what came of it."""
        expected = {one: reason for one, reason in self.expected_failures.items() if one == check_id}
        kind = type(self)
        (result,) = run(
            seed=self.seed,
            expected_failures=expected,
            only=[check_id],
            timeout_s=self.timeout_s,
            maker_name=f"{kind.__module__}:{kind.__qualname__}",
        ).results
        _tell_pytest(result, expected)


class DeviceConformance(_Conformance):
    """Subclass it under a name that begins with `Test`, and say how a device is made.

    Attributes:
        capabilities: what the device claims.
    """

    checks = CHECKS
    capabilities: ClassVar[Collection[Capability]] = ()

    def make_device(self, options: Options) -> Device | Bench:
        """A fresh device, or a bench of one."""
        raise NotImplementedError(options)

    def test_duty_is_kept(self, check_id: str) -> None:
        """One check; pytest gives its id."""
        self._holds(partial(check_device, self.make_device, self.capabilities), check_id)


class CacheConformance(_Conformance):
    """Likewise for a cache.

    Attributes:
        capabilities: how the cache can be called.
    """

    checks = CACHE_CHECKS
    capabilities: ClassVar[Collection[CacheCapability]] = ()

    def make_cache(self, options: Options) -> Any:
        """A fresh cache."""
        raise NotImplementedError(options)

    def test_cache_conforms(self, check_id: str) -> None:
        """One check; pytest gives its id."""
        self._holds(partial(check_cache, self.make_cache, self.capabilities), check_id)


def _tell_pytest(result: Result, expected: Mapping[str, str]) -> None:
    """Skip, fail as expected, or fail."""
    import pytest

    if result.verdict is Verdict.NOT_CLAIMED and not expected:
        pytest.skip(f"{result.level} is not claimed")
    if result.verdict is Verdict.FAIL and expected:
        pytest.xfail(f"{expected[result.id]}: {result.message}")
    if result.verdict is not Verdict.PASS or expected:
        pytest.fail(f"{result.id}: {result.verdict.value}: {result.message}\nclause: {result.clause}", pytrace=False)
