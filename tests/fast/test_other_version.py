"""A name of the other TensorFlow is reported with the way to run the script."""

from __future__ import annotations

import sys
import types

import pytest

from npu_shim.import_hook import other_version


@pytest.mark.parametrize(
    "version, error, text",
    [
        (
            "2.15.1",
            "module 'tensorflow' has no attribute 'placeholder'",
            "1, and this is 2.15.1. Convert it with --compat-v1",
        ),
        ("2.15.1", "module 'tensorflow._api.v2.nn' has no attribute 'old'", "1, and this is 2.15.1. Convert it with"),
        ("2.15.1", "module 'tensorflow' has no attribute 'contrib'", "1, and this is 2.15.1, which has no tf.contrib."),
        ("1.15.5", "module 'tensorflow' has no attribute 'new'", "2, and this is 1.15.5. Use TensorFlow 2.6 or later."),
        ("2.15.1", "module 'tensorflow' has no attribute 'misspelt'", None),
        ("2.15.1", "'Net' object has no attribute 'placeholder'", None),
    ],
)
def test_a_name_of_the_other_version(
    version: str, error: str, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    v1 = types.SimpleNamespace(placeholder=None, nn=types.SimpleNamespace(old=None))
    compat = types.SimpleNamespace(v1=v1, v2=types.SimpleNamespace(new=None))
    fake = types.SimpleNamespace(__version__=version, compat=compat)
    monkeypatch.setitem(sys.modules, "tensorflow", fake)  # type: ignore[arg-type]
    found = other_version.version_advice(AttributeError(error))
    assert (
        found is None
        if text is None
        else found is not None and found.startswith(f"this script speaks TensorFlow {text}")
    )
