"""The samples train, and train the same before and after migration."""
from __future__ import annotations

import concurrent.futures
import pathlib
import statistics
import subprocess
import sys
from typing import Callable, Iterator

import pytest
import tensorflow.compat.v1 as tf

from samples import compare, training

SAMPLES = {sample.name: sample for sample in compare.SAMPLES}
SEEDS = (1, 2, 3)

# TensorFlow lost Estimator after 2.15, and graph mode for Keras with Keras 3.
HAS_ESTIMATOR = hasattr(tf, 'estimator')
HAS_GRAPH_KERAS = int(getattr(tf.keras, '__version__', '2').split('.')[0]) < 3
RUNNABLE = [name for name, there in (
    ('digits_estimator', HAS_ESTIMATOR), ('digits_session', True),
    ('text_keras', HAS_GRAPH_KERAS)) if there]

# Seconds matter here: half of a text run's steps show the same as all of them.
STEPS = {'digits_estimator': 400, 'digits_session': 400, 'text_keras': 1500}

# With dropout the two scripts may draw different masks, as one script does with
# two seeds of its masks. Over 18 such pairs the accuracy differed by 0.0066 (digits,
# one standard deviation) and 0.002 (text): for a mean of three seeds the bands are
# about four standard deviations wide. The loss is the mean over the second half of
# the logged steps; migrated / original was 0.86 to 1.08 for the digits and 0.99 to
# 1.00 for the text. A dropout which does nothing gives 0.3 and 0.94.
ACCURACY_BAND = {'digits_estimator': 0.015, 'digits_session': 0.015, 'text_keras': 0.005}
LOSS_RATIO_BAND = {'digits_estimator': 1.35, 'digits_session': 1.35, 'text_keras': 1.03}

# How the migrated sample ends where TensorFlow lacks what it needs.
NO_SUCH_THING = {
    'digits_estimator': ('NPURunConfig needs tf.estimator, which TensorFlow ',
                         'the last TensorFlow that has it is 2.15.'),
    'text_keras': ('set_keras_session_npu_config needs Keras sessions, which the Keras 3 of ',
                   'the last TensorFlow that has them is 2.15.'),
}

Train = Callable[..., 'concurrent.futures.Future[training.Run]']


@pytest.fixture(scope='module')
def train(repo_root: pathlib.Path,
          tmp_path_factory: pytest.TempPathFactory) -> Iterator[Train]:
    """train('original' | 'expected_npu', sample, *flags) -> the future of its run.

    Two scripts run at a time; the same run is made once.
    """
    logs = tmp_path_factory.mktemp('logs')
    runs: dict[tuple[str, ...], concurrent.futures.Future[training.Run]] = {}

    def start(kind: str, name: str, *flags: str) -> concurrent.futures.Future[training.Run]:
        key = (kind, name) + flags
        if key not in runs:
            script = repo_root / 'samples' / name / (kind + '.py')
            log = logs / '_'.join(key).replace('--', '')
            all_flags = ['--steps=%d' % STEPS[name], *flags]
            runs[key] = pool.submit(
                lambda: training.Training(script, all_flags, log).result())
        return runs[key]

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        yield start


def pairs_with_dropout(train: Train, name: str) -> list[tuple[training.Run, training.Run]]:
    """(original, migrated) for every seed, with the sample's default dropout."""
    futures = [(train('original', name, '--seed=%d' % seed),
                train('expected_npu', name, '--seed=%d' % seed)) for seed in SEEDS]
    return [(original.result(), migrated.result()) for original, migrated in futures]


def late_loss(run: training.Run) -> float:
    """Mean loss over the second half of the logged steps."""
    steps = sorted(run.losses)
    return statistics.mean(run.losses[step] for step in steps[len(steps) // 2:])


@pytest.mark.parametrize('name', sorted(SAMPLES))
def test_expected_npu_is_what_the_tool_writes_today(
        name: str, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written, _ = compare.migrate(name, tmp_path / 'out')
    expected = repo_root / 'samples' / name / 'expected_npu.py'
    assert written.read_bytes().decode() == expected.read_bytes().decode(), (
        'when the change is wanted: python %s -i samples/%s/original.py -o OUT && '
        'cp OUT/original.py samples/%s/expected_npu.py' % (
            compare.TOOL.relative_to(repo_root), name, name))


@pytest.mark.parametrize('name', RUNNABLE)
def test_without_dropout_both_log_the_same_loss_at_every_step(name: str, train: Train) -> None:
    original = train('original', name, '--dropout=0')
    migrated = train('expected_npu', name, '--dropout=0')
    difference = compare.largest_difference(original.result(), migrated.result())
    assert difference <= SAMPLES[name].loss_tolerance


@pytest.mark.parametrize('name', sorted(SAMPLES))
def test_the_migrated_sample_trains_or_says_what_this_tensorflow_lacks(
        name: str, train: Train) -> None:
    future = train('expected_npu', name, '--dropout=0')
    if name in RUNNABLE:
        losses = future.result().losses
        assert len(losses) >= 10 and min(losses) == 1
        assert losses[max(losses)] < 0.5 * losses[1]
        return
    with pytest.raises(training.SampleError) as error:
        future.result()
    last_line = str(error.value).rstrip().splitlines()[-1].strip()
    assert last_line.startswith('RuntimeError: ')
    for text in NO_SUCH_THING[name] + (tf.__version__, 'Install tensorflow==2.15.*'):
        assert text in last_line


@pytest.mark.parametrize('name', RUNNABLE)
def test_with_dropout_both_end_within_the_band_of_three_seeds(name: str, train: Train) -> None:
    original, migrated = zip(*pairs_with_dropout(train, name))
    difference = (statistics.mean(run.accuracy for run in original)
                  - statistics.mean(run.accuracy for run in migrated))
    assert abs(difference) <= ACCURACY_BAND[name]
    ratio = (statistics.mean(late_loss(run) for run in migrated)
             / statistics.mean(late_loss(run) for run in original))
    assert 1 / LOSS_RATIO_BAND[name] <= ratio <= LOSS_RATIO_BAND[name]


@pytest.mark.parametrize('name', RUNNABLE)
def test_the_band_would_show_a_dropout_which_does_nothing(name: str, train: Train) -> None:
    with_dropout = pairs_with_dropout(train, name)[0][0]
    without = train('expected_npu', name, '--dropout=0').result()
    assert late_loss(without) / late_loss(with_dropout) < 1 / LOSS_RATIO_BAND[name]


@pytest.mark.parametrize('name', RUNNABLE)
def test_every_seed_reaches_the_stated_accuracy(name: str, train: Train) -> None:
    for original, migrated in pairs_with_dropout(train, name):
        assert original.accuracy >= SAMPLES[name].min_accuracy
        assert migrated.accuracy >= SAMPLES[name].min_accuracy


@pytest.mark.parametrize('name', RUNNABLE)
def test_train_1p_trains_here_and_keeps_a_log(
        name: str, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        ['bash', str(repo_root / 'samples' / name / 'train_1p.sh'), '--steps=20', '--log_every=5',
         '--model_dir=%s' % (tmp_path / 'model')],
        env={**training.environment(), 'PYTHON': sys.executable,
             'LOG_DIR': str(tmp_path / 'logs')},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / 'logs' / 'train_0.log').read_text(encoding='utf-8')
    assert training.parse(log).losses.keys() >= {1}
    assert list((tmp_path / 'model').iterdir())
