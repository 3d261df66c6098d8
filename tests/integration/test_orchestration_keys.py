"""Actor ids as partition keys."""

import dagster as dg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from orchestration_kit import PIPELINE

from memory_pipelines.orchestration import keys
from memory_pipelines.orchestration.keys import actor_of, add_partitions, partition_key, partitions_name

FORBIDDEN = ("...", "\a", "\b", "\f", "\n", "\r", "\t", "\v", "\0")


@given(st.text(min_size=1))
@example("user...42")
@example("a%2Fb")
@example(" padded ")
@example("two\nlines")
@example("ünï@例え.jp")
def test_every_actor_has_a_key_that_leads_back_to_it(actor_id: str) -> None:
    key = partition_key(actor_id)
    assert actor_of(key) == actor_id
    assert not any(part in key for part in FORBIDDEN)
    assert key == key.strip()


@pytest.mark.parametrize("actor_id", ["u1", "ada@example.com", "auth0|5f7c", "team/7:bob", "名前", "a.b.c"])
def test_an_ordinary_id_is_its_own_key(actor_id: str) -> None:
    assert partition_key(actor_id) == actor_id


def test_dagster_takes_the_keys() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        odd = ["user...42", "two\nlines", "tab\there", "[x]", "a,b"]
        assert add_partitions(instance, PIPELINE, odd)
        assert [actor_of(key) for key in instance.get_dynamic_partitions(partitions_name(PIPELINE))] == odd
        assert add_partitions(instance, PIPELINE, odd)
        assert len(instance.get_dynamic_partitions(partitions_name(PIPELINE))) == len(odd)


def test_above_dagsters_limit_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MAX_PARTITIONS", 3)
    with dg.DagsterInstance.ephemeral() as instance:
        assert add_partitions(instance, PIPELINE, ["a", "b"])
        assert not add_partitions(instance, PIPELINE, ["c", "d"])
        assert list(instance.get_dynamic_partitions(partitions_name(PIPELINE))) == ["a", "b"]
