"""A resolved name is data: its kind is asked for, its spelling is not parsed."""

from __future__ import annotations

import pytest
from convert_tf2npu.semantics.resolved_name import NameKind, ResolvedName, common_name


@pytest.mark.parametrize(
    "name,kind",
    [
        (ResolvedName("tensorflow.Session"), NameKind.TENSORFLOW),
        (ResolvedName("tf_slim.dropout"), NameKind.TENSORFLOW),
        (ResolvedName("horovod.tensorflow.init"), NameKind.HOROVOD),
        (ResolvedName("numpy.zeros"), NameKind.OTHER),
        (ResolvedName("", "/project/nets.py"), NameKind.PROJECT),
        (ResolvedName("tensorflow", "/project/nets.py"), NameKind.PROJECT),
    ],
    ids=lambda value: value.text if isinstance(value, ResolvedName) else value.value,
)
def test_a_name_has_the_kind_of_its_owner(name: ResolvedName, kind: NameKind) -> None:
    assert name.kind is kind


def test_a_module_of_the_project_is_no_definition_in_it() -> None:
    module, member = ResolvedName("", "/project/nets.py"), ResolvedName("Net", "/project/nets.py")
    assert module.is_module_of_project and not module.is_definition
    assert member.is_definition and not member.is_module_of_project
    assert not ResolvedName("tensorflow").is_definition and not ResolvedName("tensorflow").is_module_of_project
    assert len({module.text, member.text, ResolvedName("Net").text}) == 3


def test_two_ways_to_one_thing_agree_and_two_things_do_not() -> None:
    plain, v1 = ResolvedName("tensorflow.Session"), ResolvedName("tensorflow.compat.v1.Session")
    assert common_name({plain, v1}) == v1
    assert common_name({plain, ResolvedName("tensorflow.Graph")}) is None
    assert common_name({plain, None}) is None and common_name({plain}) == plain and common_name(set()) is None
    assert common_name({ResolvedName("Session", "/a.py"), ResolvedName("Session", "/b.py")}) is None
