"""The summary of a failed rank: the cause in full, the frames of the user, and the libraries' frames counted."""

from __future__ import annotations

import sysconfig

import pytest

from npu_shim.launching import failure

SITE = "/usr/lib/python3.9/site-packages"
TENSORFLOW = "".join(
    f'  File "{SITE}/tensorflow_core/python/client/session.py", line {line}, in run\n    run_metadata_ptr)\n'
    for line in (956, 1180, 1359)
)
USER = '  File "train.py", line 19, in main\n    sess.run(y)\n'
HEAD = "Traceback (most recent call last):\n"


def test_the_libraries_frames_are_counted_and_the_users_shown() -> None:
    output = (
        HEAD
        + USER
        + TENSORFLOW
        + f'  File "{SITE}/absl/app.py", line 303, in run\n    _run_main(main, args)\n'
        + f'  File "{sysconfig.get_path("stdlib")}/contextlib.py", line 79, in inner\n    return func(*args)\n'
        + f'  File "{failure.__file__}", line 1, in f\n    f()\n    ^^^\n  [Previous line repeated 30 more times]\n'
        + "ValueError: cause\n"
    )
    assert failure.failure_lines("before\n" + output) == [
        HEAD.rstrip(),
        *USER.splitlines(),
        "  ... 6 frames of tensorflow, absl, Python, npu_shim ...",
        "ValueError: cause",
    ]


def test_frames_of_a_users_package_are_shown_wherever_it_is() -> None:
    frames = "".join(
        f'  File "{path}", line 3, in f\n    f()\n'
        for path in (f"{SITE}/tensor2tensor/layers.py", "/home/keras_project/model.py", "tensorflow_scripts/a.py")
    )
    assert failure.failure_lines(HEAD + frames + "KeyError: 1") == (HEAD + frames + "KeyError: 1").splitlines()


@pytest.mark.parametrize("count", [1, 26, 400])
def test_a_message_is_complete(count: int) -> None:
    message = ["InvalidArgumentError: 2 root error(s) found.", *(f"  (0) line {i}" for i in range(count)), "", "end"]
    shown = failure.failure_lines(HEAD + USER + TENSORFLOW + "\n".join(message))
    assert shown == [HEAD.rstrip(), *USER.splitlines(), "  ... 3 frames of tensorflow ...", *message]


def test_a_stack_inside_a_message_is_folded_as_well() -> None:
    message = "ValueError: in user code:\n\n" + "".join("    " + line for line in (USER + TENSORFLOW).splitlines(True))
    shown = failure.failure_lines(HEAD + USER + message + "\n    InvalidArgumentError: cause\n")
    assert shown[3:] == [
        "ValueError: in user code:",
        "",
        *("    " + line for line in USER.splitlines()),
        "      ... 3 frames of tensorflow ...",
        "",
        "    InvalidArgumentError: cause",
    ]


def test_the_exceptions_that_caused_the_last_one_are_shown_and_what_was_caught_before_is_not() -> None:
    chain = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    output = (
        HEAD + USER + "OSError: caught\n" + HEAD + USER + "KeyError: 'w'" + chain + HEAD + USER + "ValueError: last"
    )
    shown = "\n".join(failure.failure_lines(output))
    assert "KeyError: 'w'" in shown and shown.endswith("ValueError: last") and "caught" not in shown


@pytest.mark.parametrize("before", ["Exception ignored in: <function f>", "Exception in thread Thread-1:"])
def test_an_exception_that_python_ignores_is_not_the_cause(before: str) -> None:
    output = HEAD + USER + "ValueError: cause\n" + before + "\n" + HEAD + TENSORFLOW + "AttributeError: later\n"
    assert "ValueError: cause" in failure.failure_lines(output)


def test_the_last_lines_of_an_output_without_a_traceback() -> None:
    assert failure.failure_lines("\n".join(map(str, range(100)))) == list(map(str, range(90, 100)))
    assert failure.failure_lines("") == []


@pytest.mark.parametrize(
    "message, rank",
    [
        ("UnknownError: PeerLost: a (allreduce sum of float32[3]) cannot complete: rank 2 (process 77) died.", 2),
        (
            "npu_shim.errors.PeerLost: rank 0 (process 7) has exited with KeyError: 'x' in the middle of a collective.",
            0,
        ),
        ("Stalled: a stalled for 60 s. Reached by rank 0. Not reached by:\nrank 1 (process 78)", None),
        ("ValueError: no PeerLost", None),
    ],
)
def test_the_rank_that_another_has_lost(message: str, rank: int | None) -> None:
    assert failure.lost_rank(HEAD + USER + message) == rank
    assert failure.lost_rank(HEAD + USER + message + "\n" + HEAD + USER + "KeyError: 'x'") is None


def test_the_traceback_in_a_message_of_tensorflow_hides_no_frame_of_the_script() -> None:
    inner = "\n".join(TENSORFLOW.splitlines()[:2]) + "\n\n"
    message = f"UnknownError: Stalled: rank 1\n{HEAD}\n{inner * 3}Stalled: rank 1\n\n\n\t [[{{{{node a}}}}]]\n"
    shown = failure.failure_lines("step 1\n" + HEAD + USER + TENSORFLOW + message)
    assert shown == [
        HEAD.rstrip(),
        *USER.splitlines(),
        "  ... 3 frames of tensorflow ...",
        "UnknownError: Stalled: rank 1",
        HEAD.rstrip(),
        "",
        "  ... 3 frames of tensorflow ...",
        "",
        "Stalled: rank 1",
        "",
        "",
        "\t [[{{node a}}]]",
    ]


def test_an_error_of_the_vendors_stack_is_explained() -> None:
    output = "E19999: Inner Error!\nEL0004: Failed to allocate memory.\n" + HEAD + USER + "InternalError: GeOp1_0"
    (line,) = failure.advice_lines(output)
    assert line.startswith("known error: The NPU has not enough free memory") and "batch size" in line
    assert failure.advice_lines(HEAD + USER + "ValueError: deep") == []
    assert failure.advice_lines("No module named 'yaml'\n" + HEAD + USER + "ValueError: deep") == []
    assert failure.advice_lines(HEAD + USER + "AttributeError: 'LogHook' object has no attribute 'step'") == []


@pytest.mark.parametrize("code, how", [(1, "failed with exit code 1"), (139, "was ended by SIGSEGV"), (137, "SIGKILL")])
def test_the_code_of_a_rank_is_read_from_what_it_reports(code: int, how: str) -> None:
    line = failure.reported_failure(3, "fd00::1", code, "a log/rank_3.log")
    assert how in line and failure.reported_code(f"step 1\n{line} and ends with:\n  x\n") == code
    assert failure.reported_code("rank 3 on a failed with exit code 1. Its log is b") is None
