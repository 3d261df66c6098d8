import asyncio
import random
import threading
from collections.abc import Awaitable, Callable

import pytest

from memory_pipelines.errors import GatewayError, GatewayFinalError, GatewayTransientError, RateLimitedError
from memory_pipelines.gateway.base import Message, Request, ToolCall
from memory_pipelines.gateway.limits import CallLimits, Turnstile, estimate_tokens
from memory_pipelines.gateway.patience import Patience, Retrier


class Clock:
    """Time that passes only when somebody sleeps; wakes sleepers in order."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        event = asyncio.Event()
        self._sleepers.append((self.now + seconds, event))
        await event.wait()

    async def run(self, *work: Awaitable[object]) -> list[object]:
        gathered = asyncio.gather(*work)
        while not gathered.done():
            for _ in range(50):
                await asyncio.sleep(0)
            if self._sleepers and not gathered.done():
                self._sleepers.sort(key=lambda pair: pair[0])
                self.now, event = self._sleepers.pop(0)
                event.set()
        return await gathered


def stile(clock: Clock, **limits: int) -> Turnstile:
    return Turnstile(CallLimits(**limits), clock=clock, sleep=clock.sleep)


def test_no_more_calls_at_once_than_allowed_and_first_come_first_served() -> None:
    async def main() -> None:
        clock = Clock()
        gate = stile(clock, concurrent_calls=3)
        inside, most, order = 0, 0, []

        async def call(n: int) -> None:
            nonlocal inside, most
            async with gate.call(1):
                order.append(n)
                inside += 1
                most = max(most, inside)
                await clock.sleep(1 + n % 2)
                inside -= 1

        await clock.run(*(call(n) for n in range(20)))
        assert most == 3
        assert order == list(range(20))

    asyncio.run(main())


@pytest.mark.parametrize("limit", [1, 2, 7, 30, 100])
def test_no_minute_sees_more_requests_than_allowed(limit: int) -> None:
    async def main() -> None:
        clock = Clock()
        gate = stile(clock, concurrent_calls=1000, requests_per_minute=limit)
        at: list[float] = []

        async def call() -> None:
            async with gate.call(1):
                at.append(clock.now)

        await clock.run(*(call() for _ in range(limit * 3 + 3)))
        for start in at:
            assert sum(start <= t < start + 59.999 for t in at) <= limit
        # Three minutes' worth and three more take at least nearly three minutes, and no more than five.
        assert 60 * 2.7 < max(at) - min(at) <= 60 * 5

    asyncio.run(main())


def test_tokens_a_minute_are_counted_by_what_calls_really_used() -> None:
    async def main() -> None:
        clock = Clock()
        gate = stile(clock, tokens_per_minute=6000)  # 600 at once, then 5401 a minute

        async def call(estimate: int, used: int) -> float:
            async with gate.call(estimate) as ticket:
                ticket.used(used)
                return clock.now

        assert await clock.run(call(600, 100)) == [1000.0]
        # 500 came back, so 500 more pass at once.
        assert await clock.run(call(500, 500)) == [1000.0]
        # Nothing is left: 5401 tokens are a minute's refill.
        (third,) = await clock.run(call(5401, 5401))
        assert third == pytest.approx(1060.0)

    asyncio.run(main())


def test_a_request_larger_than_the_limit_still_passes_in_time() -> None:
    async def main() -> None:
        clock = Clock()
        gate = stile(clock, tokens_per_minute=100)

        async def call() -> None:
            async with gate.call(1000):
                pass

        await clock.run(call())
        assert clock.now - 1000 == pytest.approx((1000 - 10) / 91 * 60)

    asyncio.run(main())


def test_a_cancelled_waiter_leaves_the_line_and_takes_nothing() -> None:
    async def main() -> None:
        gate = Turnstile(CallLimits(concurrent_calls=1))
        entered: list[str] = []

        async def call(name: str) -> None:
            async with gate.call(1):
                entered.append(name)

        async with gate.call(1):
            first, second = asyncio.create_task(call("first")), asyncio.create_task(call("second"))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.sleep(0)
        await second
        assert entered == ["second"]
        async with asyncio.timeout(5), gate.call(1):
            pass

    asyncio.run(main())


def test_a_waiter_cancelled_in_the_moment_of_its_turn_passes_the_turn_on() -> None:
    async def main() -> None:
        gate = Turnstile(CallLimits(concurrent_calls=1))

        async def call() -> None:
            async with gate.call(1):
                pass

        async with gate.call(1):
            waiting = asyncio.create_task(call())
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(5), gate.call(1):
            pass

    asyncio.run(main())


def test_a_call_cancelled_while_it_waits_for_its_minute_gives_back_what_it_took() -> None:
    async def main() -> None:
        clock = Clock()
        gate = stile(clock, requests_per_minute=1)

        async def call() -> float:
            async with gate.call(1):
                return clock.now

        await clock.run(call())
        given_up = asyncio.create_task(call())
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert await clock.run(call()) == [1060.0]

    asyncio.run(main())


def test_an_error_inside_frees_the_place() -> None:
    async def main() -> None:
        gate = Turnstile(CallLimits(concurrent_calls=1))
        with pytest.raises(ZeroDivisionError):
            async with gate.call(1):
                raise ZeroDivisionError
        async with asyncio.timeout(5), gate.call(1):
            pass

    asyncio.run(main())


def test_threads_with_their_own_event_loops_share_the_limits() -> None:
    gate = Turnstile(CallLimits(concurrent_calls=2))
    lock, counts = threading.Lock(), {"inside": 0, "most": 0, "done": 0}

    async def call() -> None:
        async with gate.call(1):
            with lock:
                counts["inside"] += 1
                counts["most"] = max(counts["most"], counts["inside"])
            await asyncio.sleep(0)
            with lock:
                counts["inside"] -= 1
                counts["done"] += 1

    async def many() -> None:
        await asyncio.gather(*(call() for _ in range(40)))

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert counts == {"inside": 0, "most": 2, "done": 120}


def test_estimates_count_scripts_without_spaces_dearer() -> None:
    def estimate(text: str) -> int:
        words = (Message(role="user", content=text),)
        return estimate_tokens(Request(purpose="p", model="m", messages=words, max_tokens=10))

    assert estimate("abcd" * 100) == 110
    assert estimate("我" * 100) == 110


def transient(**facts: object) -> GatewayTransientError:
    return GatewayTransientError("away", **facts)


def retry(clock: Clock, outcomes: list[GatewayError | str], patience: Patience, chance: Callable[[], float]) -> str:
    async def attempt() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, GatewayError):
            raise outcome
        return outcome

    async def main() -> str:
        retrier = Retrier(patience, clock=clock, sleep=clock.sleep, chance=chance)
        (answer,) = await clock.run(retrier.call(attempt))
        assert isinstance(answer, str)
        return answer

    return asyncio.run(main())


def test_waits_grow_twofold_up_to_the_longest() -> None:
    clock = Clock()
    patience = Patience(attempts=6, first=1, longest=5, seconds=100)

    assert retry(clock, [transient() for _ in range(5)] + ["ok"], patience, lambda: 1.0) == "ok"
    assert clock.slept == [1, 2, 4, 5, 5]


def test_jitter_is_full() -> None:
    clock = Clock()
    chance = random.Random(7)
    retry(clock, [transient() for _ in range(3)] + ["ok"], Patience(), chance.random)

    again = random.Random(7)
    assert clock.slept == [pytest.approx(again.random() * most) for most in (1, 2, 4)]


def test_what_the_provider_asks_for_wins() -> None:
    clock = Clock()
    limited = RateLimitedError("slow", retry_after=17.5)

    assert retry(clock, [limited, "ok"], Patience(), lambda: 1.0) == "ok"
    assert clock.slept == [17.5]


def test_a_wait_beyond_patience_is_left_to_the_caller() -> None:
    clock = Clock()

    with pytest.raises(RateLimitedError) as caught:
        retry(clock, [RateLimitedError("slow", retry_after=61)], Patience(), lambda: 1.0)
    assert clock.slept == []
    assert (caught.value.retry_after, caught.value.attempts) == (61, 1)


def test_patience_ends_after_four_attempts() -> None:
    clock = Clock()

    with pytest.raises(GatewayTransientError) as caught:
        retry(clock, [transient() for _ in range(4)], Patience(), lambda: 1.0)
    assert caught.value.attempts == 4
    assert len(clock.slept) == 3


def test_a_final_error_is_not_repeated() -> None:
    clock = Clock()

    with pytest.raises(GatewayFinalError):
        retry(clock, [GatewayFinalError("no key"), "never"], Patience(), lambda: 1.0)
    assert clock.slept == []


def test_estimates_count_tools_and_calls() -> None:
    call = ToolCall(id="c1", name="find", arguments="a" * 36)
    said = (Message(role="assistant", content="abcd", tool_calls=(call,)),)
    tool = {"x": "y" * 31}  # 40 characters as JSON, 42 in a list

    assert estimate_tokens(Request(purpose="p", model="m", messages=said, max_tokens=10)) == 11 + 10
    assert estimate_tokens(Request(purpose="p", model="m", messages=said, tools=(tool,), max_tokens=10)) == 21 + 10
